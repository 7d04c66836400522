/* SPDX-License-Identifier: Apache-2.0 */
/* Asks policies where a task may be placed. */
#ifndef COLLOC_CORE_ASK_PLACEMENT_H
#define COLLOC_CORE_ASK_PLACEMENT_H

#include "core/state/state.h"

/* Chosen: tasks tried for backfill in a pass. */
enum { CORE_BACKFILL_TRIES_MAX = 64 };

/* The query for a policy about the task. `closed`: as core_set_aside takes it. `ret_answer`: its
 * `set_aside` is set, and stays part of the query. */
struct placement_query core_query(const struct core *core, const struct task *task,
    const uint64_t *closed, int64_t now_us, struct placement *ret_answer);

/* Asks the task's policy for GPUs, or for what stands against them. */
enum placement_answer core_try_gpus(
    const struct core *core, const struct task *task, int64_t now_us, struct placement *ret_answer);

/* The same, of idle GPUs only; the task will share them none the less. */
enum placement_answer core_try_idle_gpus(
    const struct core *core, const struct task *task, int64_t now_us, struct placement *ret_answer);

/* The same without verdicts: are there GPUs for the task now, other than those that are closed? */
bool core_finds_gpus(const struct core *core, const struct task *task, const uint64_t *closed,
    int64_t now_us, struct placement *ret_answer);

/* Returns what has to be free beside the memory of a process that the driver puts back, and the
 * setting `margin`. */
int64_t core_restore_spare_bytes(const struct core *core);

/* A suspended task as policies see it: it needs the memory that it held. One whose context is not
 * on a GPU needs some more (SUSPENSION_RESTORE_SPARE_BYTES), and never less than a context. */
struct task core_as_waiting(const struct core *core, const struct task *task);

/* What a task that waits needs free on a GPU, with the margin, as its admission compares it: for
 * its allocation that waits, for what it held before it was suspended, or for its start. */
double core_needed_bytes(const struct core *core, const struct task *task);

/* After this time away a task comes back beside external processes alone, which may stay for ever,
 * to what it had beside them: without the margin and without what a restoration needs beyond it.
 * Chosen: longer than most programs take to start, and not long for one that waits. */
#define CORE_EXTERNAL_LASTS_US (60 * SECOND_US)

/* So does a task whose context has stayed on a GPU, where the driver does not take the others'
 * (task_is_context_stuck) and nothing else is: each waits for the others' memory, and none would
 * ever end. */

/* Is the task's context one that the driver does not take, on a GPU with no others than such? */
bool core_is_left_to_stuck(const struct core *core, const struct task *task);

/* Asks the policy of a suspended task for GPUs. `passes_reservation`: also those that are reserved
 * for the head of the main queue. A task whose copy is on its way from a neighbour GPU to the host
 * waits for its end: the verdicts may then say that it fits. */
enum placement_answer core_try_resumption(const struct core *core, const struct task *task,
    bool passes_reservation, int64_t now_us, struct placement *ret_answer);

/* May tasks start before the head of the queue, where its policy sees that this does not delay
 * it? */
bool core_backfills(const struct core *core, const struct task *head);

/* Returns the number of tasks to try: fewer on many GPUs, each of which costs a verdict. */
int core_backfill_tries(const struct core *core);

#endif
