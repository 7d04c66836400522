/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relative speed of GPUs of different kinds for a task. Only ratios of speeds are used. If one
 * speed is unknown, or all are equal, speeds are not compared, and each ratio is 1, as on a server
 * with one kind.
 *
 * An example: GPU 0 has the speed 800, GPU 1 the speed 200. A task that is expected to take an hour
 * takes an hour on GPU 0 and four on GPU 1. If it names the kind of GPU 1, it takes an hour there.
 */
#include "core/kind_speed.h"

#include <math.h>

#include "core/kind_match.h"

void kind_speed_compare(struct cluster_view *view)
{
    int most = 0, least = 0;
    view->speed_max = 0;
    for (int i = 0; i < view->n_gpus; i++) {
        const struct gpu_identity *id = &view->gpus[i].id;
        if (!id->is_place || !view->gpus[i].is_listed)
            continue;
        if (id->speed <= 0)
            return;
        most = id->speed > most ? id->speed : most;
        least = least == 0 || id->speed < least ? id->speed : least;
    }
    view->speed_max = most > least ? most : 0;
}

static bool may_use(const struct cluster_view *view, const struct task *task, int gpu)
{
    const struct gpu_identity *id = &view->gpus[gpu].id;
    return id->is_place && view->gpus[gpu].is_listed &&
           kind_match_gpu(task->request.gpu_kind, id->name, id->uuid);
}

/* Of the fastest GPU that the task may use; of the fastest of all where there is none. */
static double reference_speed(const struct cluster_view *view, const struct task *task)
{
    int most = 0;
    if (!task->request.gpu_kind)
        return view->speed_max;
    for (int i = 0; i < view->n_gpus; i++)
        if (view->gpus[i].id.speed > most && may_use(view, task, i))
            most = view->gpus[i].id.speed;
    return most > 0 ? most : view->speed_max;
}

double kind_speed_on(
    const struct cluster_view *view, const struct task *task, const int *gpus, int n)
{
    double least = INFINITY;
    for (int i = 0; i < n; i++)
        least = fmin(least, view->gpus[gpus[i]].id.speed);
    return view->speed_max && least > 0 && isfinite(least) ? least / reference_speed(view, task)
                                                           : 1;
}

double kind_speed_least(const struct cluster_view *view, const struct task *task)
{
    int slowest = -1;
    for (int i = 0; i < view->n_gpus && view->speed_max; i++)
        if (may_use(view, task, i) &&
            (slowest < 0 || view->gpus[i].id.speed < view->gpus[slowest].id.speed))
            slowest = i;
    return slowest < 0 ? 1 : kind_speed_on(view, task, &slowest, 1);
}

double kind_speed_at(const struct cluster_view *view, const struct task *task, int gpu)
{
    return task->request.gpus > 1 ? kind_speed_least(view, task)
                                  : kind_speed_on(view, task, &gpu, 1);
}
