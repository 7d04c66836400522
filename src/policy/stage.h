/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prediction of one GPU: a copy of its view on which residents leave one after the other, and on
 * which a task's policy is asked whether it would place the task there.
 *
 *     struct stage stage;
 *     stage_init(&stage, query, gpu);
 *     while (!stage_admits(query, &stage) && stage_can_advance(&stage))
 *         stage_advance(&stage);
 *     the task can start there in stage.passed_s
 */
#ifndef COLLOC_POLICY_STAGE_H
#define COLLOC_POLICY_STAGE_H

#include "policy/predict.h"

/* Chosen: tasks on other places that share the GPU's memory; more count as if they never left, and
 * so do those of a place with more than PREDICT_RESIDENTS_MAX. */
enum { STAGE_OTHERS_MAX = 32 };

/* A task on another place of the GPU's memory domain (core/memory_domain.h): it holds memory. */
struct stage_other {
    double bytes;
    double leaves_s; /* INFINITY: not known */
    bool is_exclusive;
};

/* One GPU whose residents continue and leave. */
struct stage {
    struct gpu_view gpu;
    struct cluster_view view;
    struct resident residents[PREDICT_RESIDENTS_MAX + 1];
    double left_s[PREDICT_RESIDENTS_MAX + 1];    /* work left: its time alone, on the kind that its
                                                  * expected time holds for; INFINITY: not known */
    double ends_s[PREDICT_RESIDENTS_MAX + 1];    /* when its time limit ends it, or INFINITY */
    double speed_max[PREDICT_RESIDENTS_MAX + 1]; /* on the slowest of its other GPUs */
    struct stage_other others[STAGE_OTHERS_MAX];
    int n_others;
    bool has_more_others; /* that never leave */
    double passed_s;
    bool is_used_externally;       /* it may never become idle */
    struct reading external_smact; /* of external processes */
};

/* Sets the stage to a GPU of the query's view, at the query's time. The GPU has at most
 * PREDICT_RESIDENTS_MAX residents. */
void stage_init(struct stage *stage, const struct placement_query *query, int gpu);

/* Returns the memory that a stage of the GPU begins with: what its residents have taken or are
 * known to need, and what others use. */
struct reading stage_used_bytes(const struct gpu_view *gpu);

/* Returns the memory that the resident has taken, or is known to need: what it holds in a stage. */
double stage_held_bytes(const struct resident *resident);

/* Returns the memory that the task holds in a stage of the GPU: all of it, if it is not known. */
double stage_task_bytes(const struct gpu_view *gpu, const struct task *task);

/* Adds a task, which is placed now, to the residents. One of unknown memory fills the GPU.
 * kind_speed: of the task there (core/kind_speed.h). */
void stage_add_task(
    struct stage *stage, const struct task *task, double kind_speed, int64_t now_us);

/* Adds a task that is placed now on another place of the memory domain. */
void stage_add_other(
    struct stage *stage, const struct task *task, double kind_speed, bool is_exclusive);

/* Is there a task that may leave, here or on another place? */
static inline bool stage_can_advance(const struct stage *stage)
{
    return stage->gpu.n_residents > 0 || stage->n_others > 0;
}

/* Lets time pass until the next task leaves; passed_s is INFINITY when that is not known. There has
 * to be one: stage_can_advance. */
void stage_advance(struct stage *stage);

/* Lets time pass until then: `at_s`, in seconds since stage_init, at least passed_s. */
void stage_run_until(struct stage *stage, double at_s);

/* A stage points into itself: it is not assigned, but copied by this. */
void stage_copy(const struct stage *stage, struct stage *ret_copy);

/* Would the query's policy place the query's task beside the present residents? Of a task of
 * several GPUs one part is placed. Without tasks the answer is yes, unless the GPU is used
 * externally. */
bool stage_admits(const struct placement_query *query, const struct stage *stage);

/* Returns the run time of the task alone (core/kind_speed.h has on which kind), or its limit, in
 * seconds; INFINITY: unknown, or no limit. */
double stage_expected_s(const struct expectation *expect);
double stage_limit_s(const struct task *task);

#endif
