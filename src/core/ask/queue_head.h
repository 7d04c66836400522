/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the main queue. */
#ifndef COLLOC_CORE_ASK_QUEUE_HEAD_H
#define COLLOC_CORE_ASK_QUEUE_HEAD_H

#include "core/state/state.h"

/* Tasks. Chosen: once this many later ones have started before it, the oldest task is the head. */
enum { CORE_PASSED_MAX = 100 };

/* Chosen: tasks of the main queue among which the head and the shortest are found. */
enum { CORE_QUEUE_DEPTH_MAX = 1024 };

/* The place of the task in the order of preemption. */
int64_t core_rank(const struct core *core, const struct task *task, int64_t now_us);

/* Does `a` come before `b`, by priority and rank? */
bool core_is_ranked_before(
    const struct core *core, const struct task *a, const struct task *b, int64_t now_us);

/* Does the suspended task come before the head of the queue, or none: is it resumed first? */
bool core_is_resumed_before(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us);

/* The task of the main queue that is placed next. Returns NULL when the queue is empty. */
struct task *core_head_of_queue(const struct core *core);

/* Was the head run again because its memory did not fit, and is it not known when the GPUs that
 * were chosen for it admit it? Then only these are kept for it, and the queue goes on behind it in
 * its order. To be asked once they have been chosen. */
bool core_queue_goes_on(const struct core *core, const struct task *head);

#endif
