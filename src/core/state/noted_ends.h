/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of tasks on which others depend. */
#ifndef COLLOC_CORE_STATE_NOTED_ENDS_H
#define COLLOC_CORE_STATE_NOTED_ENDS_H

#include "core/state/state.h"

/* Returns how many of the noted ends are before the id. */
size_t core_ends_before(const struct core *core, uint64_t id);

/* The task has ended: dependencies on it can be judged. Returns 0 or -ENOMEM. */
int core_note_end(struct core *core, uint64_t id, bool failed);

/* The first of the noted ends has been judged. */
void core_forget_first_end(struct core *core);

/* The same for the tasks that had ended before those with ids from `first` to `last_task` came to
 * depend on them. Returns 0 or -ENOMEM. */
int core_note_past_ends(struct core *core, uint64_t first, uint64_t last_task);

#endif
