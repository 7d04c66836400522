/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts the speed of all tasks if one joined some GPUs, by the interference model
 * (sharing/interference.h).
 *
 * Speed is relative to the task alone on its GPUs: 1 is not slowed down. A task on several GPUs
 * runs at the speed of its slowest GPU.
 */
#ifndef COLLOC_POLICY_PREDICT_H
#define COLLOC_POLICY_PREDICT_H

#include "core/gpu_sharers.h"
#include "core/policy.h"

enum {
    PREDICT_RESIDENTS_MAX = GPU_SHARERS_MAX - 1, /* a GPU with more residents is not predicted */
    PREDICTOR_SLOTS = 64, /* chosen: the number of GPUs that are remembered, 35 KiB on the
                                 * stack */
};

/* The effect of a placement on all tasks concerned. */
struct prediction {
    bool known;           /* the activity of all of them is known; otherwise the other members are
                      * meaningless */
    double gain;          /* progress gained by all tasks together, in GPUs, for each GPU joined */
    double progress;      /* the same in GPUs of the fastest kind: what differs where kinds do */
    double slowdown;      /* of the task that is slowed down most: 2 takes twice as long as alone */
    enum sharing sharing; /* how the task would share the GPUs */
};

/* A placement has to gain at least this much, in GPUs for each GPU joined. Chosen: with less, the
 * residents lose as much time as the new task saves. */
#define PREDICT_GAIN_MIN 0.05

/*
 * Answers many questions about one task and one view that does not change meanwhile. It caches the
 * speeds of the tasks on each GPU, before and after the task joins: a choice among pairs of GPUs
 * needs the same ones repeatedly. What was predicted last of a GPU alone is noted, too: first it is
 * asked whether the task may join, then how much that gains. Owns nothing, needs no cleanup.
 */
struct predictor {
    const struct placement_query *query;
    const struct cluster_view *view;
    int joined;                       /* the last GPU that was asked about alone; -1: none */
    struct prediction effect;         /* on it */
    int gpu_of_slot[PREDICTOR_SLOTS]; /* -1: the slot is empty */
    struct gpu_speeds {
        struct sharing_mode share;               /* of the task there */
        double before[PREDICT_RESIDENTS_MAX];    /* of the residents now */
        double after[PREDICT_RESIDENTS_MAX + 1]; /* with the task there; its speed is the last */
    } slots[PREDICTOR_SLOTS];
};

/*
 * Prepares a predictor.
 *
 * query: names the task and the settings; kept by reference.
 * view:  the query's view or another one; kept by reference.
 */
void predictor_init(struct predictor *predictor, const struct placement_query *query,
    const struct cluster_view *view);

/* Predicts the query's task on the `n` GPUs gpus[] beside their residents. Returns the effect on
 * all tasks concerned. */
struct prediction predictor_join(struct predictor *predictor, const int *gpus, int n);

/* Does what predictor_join does for a single GPU of the query's view, without a predictor. */
struct prediction predict_join_one(const struct placement_query *query, int gpu);

/*
 * Tests whether a resident of the GPU would become slower if the query's task joined it there.
 *
 * A resident of several GPUs becomes slower only when `gpu` becomes its slowest.
 *
 * Returns true also when it cannot be predicted.
 */
bool predictor_slows_resident(
    struct predictor *predictor, int gpu, const struct resident *resident);

/*
 * Predicts a resident of the GPU if the query's task joined it there. Unknown activity counts as a
 * whole GPU.
 *
 * ret_slower: how many times as long as now it would take
 *
 * Returns how many times as long as alone, started in the same way; INFINITY for both where too
 * many tasks are there.
 */
double predict_slowdown_beside(const struct placement_query *query, int gpu,
    const struct resident *resident, double *ret_slower);

/* Returns how many times as long as alone, started in the same way, the query's task itself would
 * take there. */
double predict_own_slowdown(const struct placement_query *query, int gpu);

/* Returns how many times as long a resident of the GPU would take as now if the query's task joined
 * it there. Unknown activity counts as a whole GPU. */
double predict_slowdown_of(
    const struct placement_query *query, int gpu, const struct resident *resident);

/*
 * The speeds of the residents of one GPU, as if they were on no other.
 *
 * constants:  of the interference model; NULL: the built-in ones.
 * gpu:        has at most PREDICT_RESIDENTS_MAX + 1 residents.
 * ret_speeds: room for one speed per resident.
 */
void predict_gpu_speeds(
    const struct interference_constants *constants, const struct gpu_view *gpu, double *ret_speeds);

/* The speed of a resident of `gpu` on the slowest of its other GPUs. Returns 1 when it has none. */
double predict_speed_elsewhere(
    const struct cluster_view *view, int gpu, const struct resident *resident);

#endif
