/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backfill: when the head of the queue has to wait, GPUs are reserved for it, and tasks behind it
 * start where that does not delay it. (EASY backfill, on GPUs that tasks share.)
 *
 * An example. GPUs A and B, three tasks in the queue, none of which can share a GPU:
 *
 *     task 1: 1 GPU, 60 min      starts on A at once
 *     task 2: 2 GPUs, 90 min     has to wait for A
 *     task 3: 1 GPU, 45 min
 *
 * First come, first served, leaves B idle for an hour. Backfill reserves A and B for task 2: both
 * are predicted to be free in 60 min. Task 3 would be done in 45 min: it starts on B now, and task
 * 2 still starts in 60 min. Were task 3's time 75 min, or unknown, it would delay task 2: it would
 * wait.
 *
 *     A  |111111111111|222222222222222222
 *     B  |333333333   |222222222222222222
 *        0           60 min
 *
 * The run time of a task is its expected time, divided by the speed of the kind of its GPUs
 * (core/kind_speed.h), and at most its time limit. The head is the first task of the queue, and
 * those behind it are tried in their order. Under the policy predictive the head is the task that
 * takes longest alone, at any place of the queue: long tasks last would leave GPUs idle at the end;
 * and the shortest is tried first. There, too, the oldest task is the head if its time is not
 * known, or after 100 later tasks have started before it. A task that too few healthy GPUs suit is
 * never the head unless it is the oldest (core/pass/schedule.c).
 *
 * The reserved GPUs are those predicted to admit the head first, in the number that it requests. If
 * that cannot be predicted because times are unknown, all GPUs that suit the head are reserved;
 * under predictive, and for a head that was run again, those that the fewest tasks have to leave
 * (core/ask/queue_head.c). In a cluster, all GPUs of their nodes are reserved, too. The reservation
 * stays the same until the head starts or another task becomes the head. For the same head it is
 * chosen again when the inputs of the prediction change: a recovering task takes one of the GPUs;
 * one of them fails, stops sending samples, or is kept from the head by a reservation in advance;
 * an external process appears there or takes 256 MiB more; the time limit of a running task
 * changes, or what the head itself requests. A task behind the head may start
 *
 *   1. on a GPU that is not reserved, unless it would slow down a resident that is also on a
 *      reserved GPU;
 *   2. on a reserved GPU, if the head will be admitted there after the same residents have left,
 *      although the task is still there (a task of unknown memory counts as filling the GPU);
 *   3. on a reserved GPU, if the head is predicted to be admitted there, in spite of the task, by
 *      the time at which the last of the reserved GPUs was predicted to admit it;
 *   4. if it is promised a speed (docs/promise.md), also where the head is predicted to be admitted
 *      there before it has waited as long as it takes alone. Hardly any head can join such a task,
 *      so that by rule 3 alone a third of the tasks with a promise of 1.2 made the mean completion
 *      11 % longer, and 6 % with this one (docs/measured/promise-simulated.md).
 *
 * In a cluster, where it also takes CPUs of the node, it has to be over by then besides.
 *
 * When a GPU admits the head is predicted by letting its residents leave, one after the other, at
 * the speeds of the interference model; those of unknown time last, the oldest first. After each,
 * the head's policy is asked whether it would place the head there.
 *
 * Contract:
 *   1. As long as a task is the head, a backfilled task does not make it start later than is
 *      predicted when its GPUs are reserved, provided that the times given for the tasks and the
 *      interference model are right; but by rule 4 it may, until it has waited for its own time.
 *   2. Where times are not known, the head starts at the latest when those tasks have left its GPUs
 *      that were there before they were reserved: no backfilled task keeps it waiting longer (rule
 *      2). Under predictive, and where the head was run again, another GPU may become free sooner,
 *      and be taken.
 *   3. The head may find a backfilled task on its GPU (rule 2). It is slowed down no more than the
 *      policy lets any task be.
 */
#ifndef COLLOC_POLICY_BACKFILL_H
#define COLLOC_POLICY_BACKFILL_H

#include "policy/predict.h"

/*
 * Every policy's `reserve` (core/policy.h). Returns false also for a task of more than 64 GPUs.
 *
 * For a policy that takes a GPU with residents only where conditions_wanted_bytes are free, as far
 * as that is known (conditions.h): about others it is not asked.
 */
bool backfill_reserve(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us);

/*
 * The task that the query's task would delay on a GPU.
 *
 * predictor: made for the query.
 *
 * Returns its id: the head of the queue; 0 when none would be delayed.
 */
uint64_t backfill_delayed_task(
    const struct placement_query *query, struct predictor *predictor, int gpu);

#endif
