/* SPDX-License-Identifier: Apache-2.0 */
/* A lower bound of the makespan: no policy can end all tasks earlier on GPUs as src/sharing and
 * gpu_model.c model them. */
#ifndef COLLOC_SIM_BOUND_H
#define COLLOC_SIM_BOUND_H

#include "sim/catalogue.h"
#include "sim/cluster.h"

enum { BOUND_RESOURCES = 3 };

struct bound {
    double capacity[BOUND_RESOURCES]; /* SMs and bandwidth in GPUs, memory in bytes */
    double through_s[BOUND_RESOURCES], last_s;
};

/* Returns the bound of no tasks. */
struct bound bound_start(const struct cluster *cluster);

/* Adds a task, in order of arrival. `solo_s`: how long it runs alone. */
void bound_add(struct bound *bound, double arrival_s, const struct sim_task *task, double solo_s);

/* Returns the earliest time, in seconds, at which all added tasks can have ended. */
double bound_end_s(const struct bound *bound);

#endif
