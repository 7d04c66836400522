/*
 * Overtaking (backfill) for foresee. When the first task of the queue has to wait, GPUs are kept for it: as many as it
 * wants, those that by what is known open to it first. They stay the same until it starts. Who is behind it may start
 *
 *   1. on a GPU that is not kept, unless it would slow down somebody there who is on a kept GPU too (who is slower
 *      on another of his GPUs anyway is not);
 *   2. on a kept GPU, if the first task will find it open after the same residents have left, the newcomer, whose
 *      need of memory is known, still there;
 *   3. on a kept GPU that is empty, if the time it takes is known and over before the first task can start.
 *
 * A GPU is open to a task when foresee would place it there: memory and predicted slowdown allow it.
 *
 * The promise: a task that is overtaken starts no later than the kept GPUs open to it without those who overtake it.
 * They are the ones that open first when the tasks' times are known and right, and then nobody is delayed. Where times
 * are not known, they are the ones with the fewest tasks in the way; another GPU might have opened sooner. The promise
 * is about the start: by rule 2 it may find company, as much as any task of foresee may.
 */
#ifndef COLLOC_POLICY_OVERTAKING_H
#define COLLOC_POLICY_OVERTAKING_H

#include "core/policy.h"

/* A policy's keep. */
bool overtaking_keep(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us);

/* The task that would be delayed if the query's task started on the GPU, or 0. */
uint64_t overtaking_delays(const struct placement_query *query, int gpu);

#endif
