/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc mig plan` without a GPU: a division of the GPUs for the tasks that wait. */
#ifndef COLLOC_CLI_MIG_QUEUE_H
#define COLLOC_CLI_MIG_QUEUE_H

#include "cli/command.h"

struct mig_queue_options {
    bool apply;               /* carry the proposal out, where it is worth it */
    bool what_if;             /* as if MIG were on and no task ran */
    const char *nvml_library; /* NULL: the driver's */
};

/* Asks the daemon, plans, prints, and perhaps applies. Returns an exit code; other than EXIT_OK, it
 * has printed why. */
int mig_plan_queue(const struct invocation *invocation, const struct mig_queue_options *options);

#endif
