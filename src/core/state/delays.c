/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured speeds correct the interference model of this host (docs/promise.md). Each SPEED of a
 * task that shares its GPU says how much longer the task takes than alone; the model without
 * corrections says how much longer it should. Both delays are added up for the task's user, for
 * plain processes and for clients of MPS (sharing/delay_factor.h). state/learned_model.c makes the
 * host's factors of that.
 *
 * SPEED is not in the log, so an observation decides nothing until decide/record_delays.c has
 * written it there: a replayed log gives the same corrections, and so does a restart.
 *
 * Only mixes count in which the prediction rests on known things: one whole GPU, of which all tasks
 * share in the same way, are past their start and of known activity, without external processes.
 * Activity that a user declares may be wrong, and would be taken for an error of the model by the
 * neighbours' measurements. So the activity that the GPU measures has to be about what the model
 * expects of these tasks:
 *
 *     declared 0.5 and 0.4      the model expects 0.75 of the GPU
 *     measured                  0.71: counts      0.98: one was declared too low
 */
#include "core/state/delays.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "core/gpu_sharers.h"
#include "core/state/learned_model.h"
#include "core/state/users.h"

/* The length of the windows that the daemon reports; longer ones, of slow steps, count no more. */
#define WINDOW_S 5

/* Chosen: errors of predicted speeds of 12 % to 22 % change the activity by less. */
#define SMACT_DIFFERENCE_MAX 0.2

/* ---- observations ---- */

/* Lists the tasks that compute there. Returns how many; 0: the model does not know enough of one of
 * them, or not all share in the same way. `ret_own` is the place of the task. */
static int list_known(const struct gpu_view *gpu, const struct resident *own,
    struct sharer *ret_sharers, int *ret_own)
{
    int n = 0;
    if (gpu->n_residents > GPU_SHARERS_MAX)
        return 0;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        if (resident->is_stopped)
            continue;
        if (!resident->expect.smact.valid || resident->most_bytes <= 0 ||
            resident->sharing != own->sharing)
            return 0;
        if (resident == own)
            *ret_own = n;
        gpu_sharer_set(
            &ret_sharers[n++], &resident->expect, resident->sharing, resident->thread_percent);
    }
    return n;
}

static bool is_as_active_as_expected(const struct interference_constants *constants,
    const struct gpu_view *gpu, const struct sharer *sharers, int n)
{
    double expected = interference_activity(constants, 1, 1, sharers, n).smact;
    return gpu->smact_level.valid &&
           fabs(gpu->smact_level.value - expected) <= SMACT_DIFFERENCE_MAX;
}

/* How many times as long as alone the model without corrections lets it take. Not valid where that
 * is not known. */
static struct reading predict_uncorrected(const struct core *core, const struct task *task)
{
    const struct interference_constants *constants = core_base_constants(core);
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    const struct resident *own = gpu_view_resident(gpu, task->id);
    struct sharer sharers[GPU_SHARERS_MAX];
    int at = 0;
    if (!own || gpu->id.is_mig_instance || reading_assume(gpu->external_processes, 1) > 0)
        return READING_NONE;
    int n = list_known(gpu, own, sharers, &at);
    if (n < 2)
        return READING_NONE;
    interference_solve(constants, 1, 1, sharers, n);
    if (!is_as_active_as_expected(constants, gpu, sharers, n))
        return READING_NONE;
    return reading_of(1 / (sharers[at].speed * interference_alone(constants, 1, 1, &sharers[at])));
}

void core_observe_delay(struct core *core, const struct task *task, double slowdown)
{
    struct core_user *user = core_find_user(core, task->uid);
    if (!core->settings.learns_delays || !user || task->n_gpus != 1 ||
        task->request.service.is_service)
        return;
    struct reading predicted = predict_uncorrected(core, task);
    if (predicted.valid)
        delay_sum_add(
            &user->delays[task->run->share.sharing].newer, WINDOW_S, slowdown, predicted.value);
}

/* ---- the log ---- */

int core_apply_delays(struct core *core, const struct event *event)
{
    struct core_user *user = core_add_user(core, event->delays.uid, event->time_us);
    if (!user)
        return -ENOMEM;
    struct user_delays *delays = &user->delays[event->delays.sharing];
    delays->recorded = (struct delay_sum){(double)event->delays.measured_us / (double)SECOND_US,
        (double)event->delays.predicted_us / (double)SECOND_US};
    delays->newer = (struct delay_sum){0, 0};
    delays->recorded_us = event->time_us;
    core_correct_model(core);
    return 0;
}
