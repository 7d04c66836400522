/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/bound.h"

#include <math.h>

/*
 * A task of work w, which takes smact, dram and memory m of each of its g GPUs for the s seconds
 * that it takes alone, needs g * s * smact SM-seconds (in GPUs), g * s * dram of bandwidth and g *
 * s * m of memory: sharing slows it, and so spends each no faster and holds the last longer. Of a
 * resource of which there is C, what arrives from time r on takes until
 *
 *     r + sum over tasks arriving from r on of their work / C
 *
 * at the least, whatever r is; and no task ends before its own arrival + s. The bound is the
 * greatest of all these. Over r it is the time at which a single queue is through that serves the
 * tasks in order of arrival, C of work a second:
 *
 *     through = max(through, arrival) + work / C
 */
struct bound bound_start(const struct cluster *cluster)
{
    struct bound bound = {0};
    for (int i = 0; i < cluster->n_places; i++) {
        bound.capacity[0] += cluster->places[i].sms;
        bound.capacity[1] += cluster->places[i].bandwidth;
        bound.capacity[2] += (double)cluster->places[i].capacity_bytes;
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
