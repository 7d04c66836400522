/* SPDX-License-Identifier: Apache-2.0 */
/* Has the host memory for the copy of a task that gives way? */
#ifndef COLLOC_CORE_ASK_COPY_ROOM_H
#define COLLOC_CORE_ASK_COPY_ROOM_H

#include "core/state/state.h"

/* Returns false where it is known that the running task's copy has too little. */
bool core_has_copy_room(const struct core *core, const struct task *task);

/* May the core suspend or move it now? Not a service, not again soon after that has failed, and not
 * without host memory for its copy. */
bool core_may_suspend(const struct core *core, const struct task *task, int64_t now_us);

#endif
