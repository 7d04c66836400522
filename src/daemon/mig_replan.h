/* SPDX-License-Identifier: Apache-2.0 */
/* Divides GPUs anew by MIG while tasks wait (setting mig-plan): runs `colloc mig plan --apply`. */
#ifndef COLLOC_DAEMON_MIG_REPLAN_H
#define COLLOC_DAEMON_MIG_REPLAN_H

#include <uv.h>

#include "core/core.h"
#include "daemon/config.h"

struct mig_replan;

/* Creates the part. `config`, `core`: borrowed, and outlive it. Returns NULL when memory is out. */
struct mig_replan *mig_replan_create(
    uv_loop_t *loop, const struct config *config, const struct core *core);

/* Ends it; a plan that is being carried out is left alone. NULL is fine. */
void mig_replan_close(struct mig_replan *replan);

/* Releases the part once the loop has run after mig_replan_close. NULL is fine. */
void mig_replan_destroy(struct mig_replan *replan);

#endif
