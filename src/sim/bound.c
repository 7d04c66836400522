/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower bound, one resource at a time.
 *
 * A task on g GPUs that runs s seconds alone, with smact, dram and memory m on each, needs g s
 * smact SM-seconds, g s dram of bandwidth and g s m of memory times time. Sharing slows tasks, so
 * it never uses SMs or bandwidth faster than alone, and holds memory longer. Of a resource with
 * capacity C, the tasks that arrive from a time t on therefore need it until at least
 *
 *     t + sum of their work / C
 *
 * whatever t is; and no task ends before its own arrival + s. The bound is the greatest of all
 * these. The maximum over t is when a single queue ends that serves the tasks in order of arrival,
 * C of work a second:
 *
 *     through = max(through, arrival) + work / C
 *
 * Example: C = 4 GPUs of SMs; two tasks arrive at 0 s and 10 s, each with 80 SM-seconds. The queue
 * is through at 20 s, then at max(20, 10) + 20 = 40 s: no policy can end earlier.
 */
#include "sim/bound.h"

#include <math.h>

struct bound bound_start(const struct cluster *cluster)
{
    struct bound bound = {0};
    for (int i = 0; i < cluster->n_places; i++) {
        bound.capacity[0] += cluster->places[i].sms;
        bound.capacity[1] += cluster->places[i].bandwidth;
        if (cluster->places[i].memory_place == i)
            bound.capacity[2] += (double)cluster->identities[i].mem_total_bytes;
    }
    return bound;
}

void bound_add(struct bound *bound, double arrival_s, const struct sim_task *task, double solo_s)
{
    double each[BOUND_RESOURCES] = {task->demand.smact,
        isnan(task->demand.dram) ? 0 : task->demand.dram, (double)task->memory_bytes};
    for (int i = 0; i < BOUND_RESOURCES; i++) {
        double work = task->gpus * solo_s * each[i];
        bound->through_s[i] = fmax(bound->through_s[i], arrival_s) + work / bound->capacity[i];
    }
    bound->last_s = fmax(bound->last_s, arrival_s + solo_s);
}

double bound_end_s(const struct bound *bound)
{
    double end_s = bound->last_s;
    for (int i = 0; i < BOUND_RESOURCES; i++)
        end_s = fmax(end_s, bound->through_s[i]);
    return end_s;
}
