/* SPDX-License-Identifier: Apache-2.0 */
/* Can the GPUs ever serve a task, as far as is known now? */
#ifndef COLLOC_CORE_ASK_SERVABLE_H
#define COLLOC_CORE_ASK_SERVABLE_H

#include "core/state/state.h"

/* Can the GPU serve the task once its residents have left, as far as is known now? `answer`: to a
 * question about the task; GPUs that it sets aside cannot. */
bool core_can_serve(const struct core *core, int i, const struct task *task,
    const struct placement *answer, int64_t now_us);

/* Do enough healthy GPUs suit the task? A lost GPU may never return. */
bool core_can_be_served(const struct core *core, const struct task *task);

/* Do enough of them, without those that the answer to the task sets aside? */
bool core_waits_for_room(
    const struct core *core, const struct task *task, const struct placement *answer);

/* Is there a GPU of a kind that both tasks may use? */
bool core_shares_kinds(const struct core *core, const struct task *task, const struct task *head);

#endif
