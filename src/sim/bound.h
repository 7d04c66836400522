/* SPDX-License-Identifier: Apache-2.0 */
/* A lower bound of the makespan: no policy can be through sooner, under the laws of src/sharing and
 * gpu_model.c. */
#ifndef COLLOC_SIM_BOUND_H
#define COLLOC_SIM_BOUND_H

#include "sim/catalogue.h"
#include "sim/cluster.h"

enum { BOUND_RESOURCES = 3 };

struct bound {
    double capacity[BOUND_RESOURCES]; /* SMs and bandwidth in GPUs, memory in bytes */
    double through_s[BOUND_RESOURCES], last_s;
};

struct bound bound_start(const struct cluster *cluster);

/* One more task, in order of arrival. */
void bound_add(struct bound *bound, double arrival_s, const struct sim_task *task, double solo_s);

/* No earlier than this can all tasks so far have ended. */
double bound_end_s(const struct bound *bound);

#endif
