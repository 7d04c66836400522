/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overtaking (backfill) for foresee.
 *
 * Who is first: the task that takes longest alone, wherever it stands in the queue; large ones at
 * the end could not fill the machine. But the oldest is, when it does not say how long it takes, or
 * when 100 have overtaken it: so it is first in, first out where no times are known. Nor is it one
 * for whom too few GPUs are well (core/schedule.c).
 *
 * When the first one has to wait, GPUs are kept for it: as many as it wants, those that are
 * predicted to open to it first. They stay the same as long as it is the first and no recovering
 * task takes one of them. The others, the shortest first, may start
 *
 *   1. on a GPU that is not kept, unless it would slow down somebody there who is on a kept GPU too
 * (who is slower on another of his GPUs anyway is not);
 *   2. on a kept GPU, if the first task will find it open after the same residents have left, the
 * newcomer still there (who is taken to fill the GPU when its need of memory is not known);
 *   3. on a kept GPU, if that is predicted to be open, in spite of the newcomer, by the time when
 * the last of the kept ones was.
 *
 * A GPU is open to a task when foresee would place it there: memory and predicted slowdown allow
 * it. When that will be is predicted by going through who leaves next: what is left to each of the
 * time that it is known to take, at the speed that the laws of sharing give it there, and that it
 * has on its other GPUs now.
 *
 * The promise: as long as a task is the first, who overtakes it delays its start by nothing, when
 * the tasks' times are known and right, and so are the laws. Where times are not known, GPUs are
 * kept where the fewest tasks are in the way; another GPU might have opened sooner. The promise is
 * about the start: by rule 2 it may find company, as much as any task of foresee may.
 */
#ifndef COLLOC_POLICY_OVERTAKING_H
#define COLLOC_POLICY_OVERTAKING_H

#include "policy/predict.h"

/* A policy's keep. */
bool overtaking_keep(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us);

/* The task that would be delayed if the query's task, which the prediction is for, started on the
 * GPU, or 0. */
uint64_t overtaking_delays(
    const struct placement_query *query, struct prediction *prediction, int gpu);

#endif
