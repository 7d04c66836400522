/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the GPUs of a server with several kinds are, relative to each other.
 *
 * The expected time of a task holds for the fastest kind of the server that the task may use: for
 * the kind that it was measured on, where the task names that kind only. A time limit is wall time
 * on every kind.
 */
#ifndef COLLOC_CORE_KIND_SPEED_H
#define COLLOC_CORE_KIND_SPEED_H

#include "core/view.h"

/* Sets view->speed_max from the places of the view. */
void kind_speed_compare(struct cluster_view *view);

/* Returns the speed of a GPU relative to the fastest of the view; 1 where they are not compared. */
static inline double kind_speed_of(const struct cluster_view *view, int gpu)
{
    return view->speed_max ? (double)view->gpus[gpu].id.speed / view->speed_max : 1;
}

/* Returns how fast the task is on the slowest of these GPUs, relative to the kind that its expected
 * time holds for; 1 where speeds are not compared. */
double kind_speed_on(
    const struct cluster_view *view, const struct task *task, const int *gpus, int n);

/* Returns the same on the slowest GPU that the task may be placed on. */
double kind_speed_least(const struct cluster_view *view, const struct task *task);

/* Returns the same if the task gets this GPU: the other GPUs of a task of several may be slower. */
double kind_speed_at(const struct cluster_view *view, const struct task *task, int gpu);

#endif
