/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Under MPS a large training takes the SMs as they come, and leaves a small one a third of its
 * speed. A limit on the large one's SMs divides the GPU between them, and costs it less than a
 * pause would (docs/measured/mps.md has the measurements). A client gets its limit when it starts
 * and keeps it. So the newcomer gets the largest limit with which each task on its GPUs is
 * predicted to keep the speed that it was promised. An example: a small training was promised 1.5,
 * and a GPT-2 joins it.
 *
 *     limit            none   80 %   70 %   60 %   55 %   50 %
 *     the small one    2.9    2.1    1.7    1.43   1.35   1.28     times as long as a process alone
 *     speeds in all    1.24   1.24   1.25   1.24   1.24   1.23
 *
 * As a client of MPS the small one takes 1.16 times as long alone, so it may take 1.74. The
 * newcomer gets 65 %: the promise also holds if the model is wrong by MODEL_ERROR. If no limit
 * leaves that room, one with which the promise just holds will do. The sum hardly depends on the
 * limit. On an H200 70 % was too much, 50 and 55 % were not (docs/measured/promise.md).
 *
 * The newcomer keeps its limit when the promised task has left. So it gets none below half of the
 * SMs, and waits or goes elsewhere: in simulation that ends all tasks sooner, on 1 to 8 GPUs
 * (docs/measured/promise-simulated.md). A promised one gets none at all: the limit
 * would slow it down for all its life, unseen, since its speed alone is measured under the limit.
 */
#include "core/promise_share.h"

#include "core/gpu_sharers.h"
#include "sharing/interference_cache.h"

enum { STEP_PERCENT = 5, LEAST_PERCENT = 50 }; /* chosen */

/* The median error of a predicted slowdown is 11 to 12 % (docs/measured/sharing.md). */
#define MODEL_ERROR 1.1

static bool has_promise(const struct resident *resident)
{
    return resident->promise.slowdown_max > 0 && !resident->is_stopped;
}

static bool is_any_promised(const struct cluster_view *view, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < view->gpus[gpus[i]].n_residents; k++)
            if (has_promise(&view->gpus[gpus[i]].residents[k]))
                return true;
    return false;
}

/* Are the promises of a GPU predicted to hold, if all tasks are `error` times slower than
 * predicted? */
static bool holds_on(const struct cluster_view *view, const struct task *task,
    const struct gpu_view *gpu, int percent, double error)
{
    struct sharer sharers[GPU_SHARERS_MAX];
    double speeds[GPU_SHARERS_MAX];
    int n = gpu->n_residents;
    if (n >= GPU_SHARERS_MAX)
        return false;
    gpu_sharers_list(gpu, sharers);
    gpu_sharer_set(&sharers[n], &task->request.expect, SHARING_MPS, percent);
    interference_speeds_cached(
        view->constants ? view->constants : &interference_measured, sharers, n + 1, speeds);
    for (int k = 0; k < n; k++)
        if (has_promise(&gpu->residents[k]) &&
            error * gpu_sharer_slowdown(view->constants, &sharers[k], speeds[k]) >
                gpu->residents[k].promise.slowdown_max)
            return false;
    return true;
}

static bool holds_everywhere(const struct cluster_view *view, const struct task *task,
    const int *gpus, int n, int percent, double error)
{
    for (int i = 0; i < n; i++)
        if (!holds_on(view, task, &view->gpus[gpus[i]], percent, error))
            return false;
    return true;
}

int promise_share_limit(
    const struct cluster_view *view, const struct task *task, const int *gpus, int n, int percent)
{
    static const double errors[] = {MODEL_ERROR, 1};
    int most = percent ? percent : 100;
    if (task->request.slowdown_max.valid || !is_any_promised(view, gpus, n))
        return percent;
    for (int i = 0; i < 2; i++) {
        for (int limit = most; limit >= LEAST_PERCENT; limit -= STEP_PERCENT)
            if (holds_everywhere(view, task, gpus, n, limit == 100 ? 0 : limit, errors[i]))
                return limit == most ? percent : limit;
    }
    return percent;
}
