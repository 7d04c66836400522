/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interference model says how active a GPU is with n tasks of a given activity, and the more
 * active each is, the more all are. So the activity is found by bisection.
 *
 *     one that does 35 %          35 %
 *     seven clients, 85 %         15 % each: they wait for each other's kernels
 *     seven clients, 99.5 %       not known
 */
#include "core/equal_activity.h"

#include "core/gpu_sharers.h"
#include "core/memory_domain.h"

/* Chosen: halvings of the interval from 0 to 1; far below the model's error. */
enum { BISECTIONS = 12 };

static bool is_measured(const struct gpu_view *gpu)
{
    bool is = gpu->n_residents > 0 && gpu->n_residents <= GPU_SHARERS_MAX &&
              !memory_domain_is_shared(gpu) && reading_assume(gpu->external_processes, 1) == 0;
    for (int i = 0; is && i < gpu->n_residents; i++)
        is = !gpu->residents[i].is_stopped &&
             gpu->residents[i].samples_risen >= RISEN_SAMPLES_ENOUGH;
    return is;
}

static double activity_together(
    const struct gpu_view *gpu, const struct interference_constants *constants, double each)
{
    const struct expectation expect = {.smact = reading_of(each)};
    struct sharer sharers[GPU_SHARERS_MAX];
    for (int i = 0; i < gpu->n_residents; i++)
        gpu_sharer_set(
            &sharers[i], &expect, gpu->residents[i].sharing, gpu->residents[i].thread_percent);
    interference_solve(constants, 1, 1, sharers, gpu->n_residents);
    return interference_activity(constants, 1, 1, sharers, gpu->n_residents).smact;
}

/* Of the newest samples, if there is one more since a task came, went or took memory: the first one
 * describes the time before that, too. */
static struct reading level_of(const struct gpu_view *gpu)
{
    int64_t first_us = window_newest_us(&gpu->smact, RISEN_SAMPLES_ENOUGH + 1);
    if (first_us < gpu->mix_since_us || first_us == INT64_MAX)
        return READING_NONE;
    return window_mean_since(
        &gpu->smact, window_newest_us(&gpu->smact, RISEN_SAMPLES_ENOUGH), RISEN_SAMPLES_ENOUGH);
}

struct reading equal_activity(
    const struct gpu_view *gpu, const struct interference_constants *constants)
{
    struct reading level = is_measured(gpu) ? level_of(gpu) : READING_NONE;
    if (!level.valid || gpu->n_residents == 1)
        return level;
    double low = 0, high = 1;
    if (level.value > ACTIVITY_FULL)
        return READING_NONE;
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        bool is_more = activity_together(gpu, constants ? constants : &interference_measured,
                           middle) > level.value;
        *(is_more ? &high : &low) = middle;
    }
    return reading_of((low + high) / 2);
}
