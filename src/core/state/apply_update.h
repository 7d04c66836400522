/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a change of a task's request, and says what hinders one. */
#ifndef COLLOC_CORE_STATE_APPLY_UPDATE_H
#define COLLOC_CORE_STATE_APPLY_UPDATE_H

#include "core/state/state.h"

/* Has the task not been started yet, or does it wait to be started again? */
bool core_awaits_start(const struct task *task);

/* Why the update cannot be applied; NULL: it can. */
const char *core_update_hindrance(const struct task *task, const struct task_update *update);

/* The CPUs and main memory that the task requests after the update. */
struct host_resources core_changed_host(const struct task *task, const struct task_update *update);

/* Applies an UPDATE. Returns 0, CORE_NOT_NOW or -ENOMEM. */
int core_apply_update(struct core *core, struct task *task, const struct event *event);

#endif
