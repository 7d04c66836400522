/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that take more GPU memory than they declared or than was estimated for them. */
#ifndef COLLOC_DAEMON_OVERRUN_H
#define COLLOC_DAEMON_OVERRUN_H

#include <jansson.h>
#include <stdio.h>

#include "core/core.h"
#include "daemon/jobs.h"

/* Returns the tasks that share a GPU with this one and overran, as {"task", "over_mib",
 * "declared"}; the caller releases the list. */
json_t *overruns_beside(const struct core *core, const struct jobs *jobs, const struct task *task);

/* Writes such a list (may be NULL) as text: "task 19 took 11.4 GiB more than it declared; ...". */
void overruns_write(FILE *out, const json_t *list);

/* Returns the overrun of the task's own memory and, after a crash, of the tasks beside it, as one
 * text; "" when there is none. `job` may be NULL. The caller releases it. */
json_t *overrun_text(const struct task *task, const struct job *job);

#endif
