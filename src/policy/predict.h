/* SPDX-License-Identifier: Apache-2.0 */
/* What it would do to everyone's speed if a task joined some GPUs, by the laws of sharing. */
#ifndef COLLOC_POLICY_PREDICT_H
#define COLLOC_POLICY_PREDICT_H

#include "core/policy.h"

/* Residents of a GPU that are looked at: with more there than that, nothing is known. */
enum { PREDICT_RESIDENTS_MAX = 31, PREDICT_KEPT = 64 };

/* Speed is of what a task does alone, 1 being not slowed down; a task of several GPUs is as fast as
 * on its slowest. */
struct outlook {
    bool
        known; /* what everyone concerned asks of a GPU is known; otherwise the rest says nothing */
    double gain; /* the newcomer's speed less what the others lose, each times its GPUs, for each
                    GPU of the newcomer */
    double slowdown; /* of whoever is slowed down most: 2 is twice as long as alone */
};

/*
 * For a query's task and a view, the query's or another, that all stay as they are: what was solved
 * of a GPU is kept, since most questions are about the same ones. Lies on the stack of who asks;
 * owns nothing.
 */
struct prediction {
    const struct placement_query *query;
    const struct cluster_view *view;
    int of[PREDICT_KEPT]; /* which GPU is in the slot, or -1 */
    struct mix {
        struct sharing_mode share;               /* as the task would share it */
        double before[PREDICT_RESIDENTS_MAX];    /* speeds of the residents there now */
        double after[PREDICT_RESIDENTS_MAX + 1]; /* with the task there, whose own is the last */
    } mixes[PREDICT_KEPT];
};

/* So much has to be gained, in GPUs: less costs those who are there as much time as it saves who
 * comes. */
#define PREDICT_GAIN_MIN 0.05

void predict_start(struct prediction *prediction, const struct placement_query *query,
    const struct cluster_view *view);

/* As if the task were on the `n` GPUs gpus[] too, sharing them as it then would. */
struct outlook predict_joining(struct prediction *prediction, const int *gpus, int n);

/* The same of one GPU, for who has no more questions. */
struct outlook predict_joining_one(const struct placement_query *query, int gpu);

/* Would that resident of the GPU be slower, wherever else it is too, if the task came there? Not
 * known: it may be. */
bool predict_slows(struct prediction *prediction, int gpu, const struct resident *resident);

/* How fast those on a GPU are, on this one alone; at most PREDICT_RESIDENTS_MAX + 1. */
void predict_speeds(const struct gpu_view *gpu, double *ret_speeds);

/* How fast the resident is on the slowest of its other GPUs; 1 when it has none. */
double predict_speed_elsewhere(
    const struct cluster_view *view, int gpu, const struct resident *resident);

#endif
