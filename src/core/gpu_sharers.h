/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a GPU as the interference model takes them (sharing/interference.h). */
#ifndef COLLOC_CORE_GPU_SHARERS_H
#define COLLOC_CORE_GPU_SHARERS_H

#include "core/view.h"
#include "sharing/interference.h"

enum { GPU_SHARERS_MAX = 32 }; /* chosen: with more tasks on a GPU nothing is predicted */

/* Sets a sharer from a task's expected values. Unknown activity counts as the whole GPU; unknown
 * fractions follow from SMACT. */
void gpu_sharer_set(struct sharer *sharer, const struct expectation *expect, enum sharing sharing,
    int thread_percent);

/* Sets a sharer for each resident of the GPU; a stopped one has almost no activity. */
void gpu_sharers_list(const struct gpu_view *gpu, struct sharer *ret_sharers);

/*
 * Returns the SM activity that a task has alone as a plain process, if it has `seen` alone as it is
 * started now. A client of MPS is slower, and so less active: expected values are not those of
 * clients. constants: NULL: those built in.
 */
double gpu_sharer_smact(const struct interference_constants *constants,
    const struct expectation *expect, enum sharing sharing, int thread_percent, double seen);

/* Returns how many times as long as alone, started in the same way, a sharer of that speed takes:
 * speeds are measured so. constants: NULL: those built in. */
double gpu_sharer_slowdown(
    const struct interference_constants *constants, const struct sharer *sharer, double speed);

#endif
