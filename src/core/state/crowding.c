/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of which little is known start at once, and a prediction may be wrong. So a GPU may get
 * more tasks than is good for them. Their measured speeds (state/promise.c) show it in two ways:
 *
 * 1. All together get less done than without the last one: the sum of their speeds, each relative
 *    to the task alone, is lower. How fast the others would be without it is not measured: their
 *    delays are taken to shrink as the interference model says.
 *
 *        measured with b    a and b take 2.6 times as long as alone    0.38 + 0.38 = 0.77
 *        without b          a is alone                                 1.00
 *
 *    Only where the activity of one of them is not known, or the policy predicts speeds. Otherwise
 *    they were let in by what is known of them: simulated, to stop them then made tasks complete
 *    2 % later.
 *
 * 2. One takes more than slowdown-max times as long as alone, under a policy that lets none do so,
 *    and by whose prediction none would: the activity of all is known.
 *
 * Then the first in the order of giving way is one too many (pass/promise_pass.c). It says nothing
 * of tasks on several GPUs, which are as slow as on the slowest of these, nor beside a service or a
 * task that was promised a speed: these have rules of their own, and come first by them.
 */
#include "core/state/crowding.h"

#include "core/gpu_sharers.h"
#include "core/policy.h"
#include "core/promised.h"
#include "core/state/tasks.h"
#include "sharing/interference_cache.h"

/* Chosen: a stop and a return take at most a twentieth of the time that a task computes
 * (CORE_RUN_PER_COST), so less than that is not worth them. */
#define GAIN_MIN 1.05

/* Tasks that compute on a GPU. */
struct crowd {
    int n, own; /* `own`: the place of the task in question */
    bool are_known;
    double measured[GPU_SHARERS_MAX]; /* times as long as alone */
    struct sharer sharers[GPU_SHARERS_MAX];
};

bool core_gives_way_rather(const struct task *a, const struct task *b)
{
    if (core_has_promise(a) != core_has_promise(b))
        return core_has_promise(b);
    if (a->request.priority != b->request.priority)
        return a->request.priority < b->request.priority;
    int64_t a_us = task_runs_since_us(a), b_us = task_runs_since_us(b);
    return a_us != b_us ? a_us > b_us : a->id > b->id;
}

static bool is_measured(const struct task *task, int64_t now_us)
{
    const struct task_promise *promise = &task->run->promise;
    return promise->slowdown.valid && now_us < promise->reported_us + PROMISE_REPORT_VALID_US;
}

static bool has_rule_of_its_own(const struct task *task)
{
    return core_has_promise(task) || task->request.service.is_service || task->n_gpus != 1;
}

/* Returns whether all that compute there are measured, and the task gives way before the others. */
static bool list_crowd(
    const struct core *core, const struct task *task, int64_t now_us, struct crowd *ret_crowd)
{
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    *ret_crowd = (struct crowd){.are_known = true};
    if (gpu->n_residents > GPU_SHARERS_MAX)
        return false;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        const struct task *other = core_find_task(core, resident->task);
        int at = ret_crowd->n;
        if (resident->is_stopped)
            continue;
        if (has_rule_of_its_own(other) || !is_measured(other, now_us) ||
            (other != task && core_gives_way_rather(other, task)))
            return false;
        if (other == task)
            ret_crowd->own = at;
        ret_crowd->are_known &= resident->expect.smact.valid;
        ret_crowd->measured[at] = other->run->promise.slowdown.value;
        gpu_sharer_set(&ret_crowd->sharers[at], &resident->expect, resident->sharing,
            resident->thread_percent);
        ret_crowd->n++;
    }
    return ret_crowd->n > 1;
}

/* How much longer than alone each takes, by the model. */
static void predict_delays(
    const struct core *core, struct sharer *sharers, int n, double *ret_delays)
{
    double speeds[GPU_SHARERS_MAX];
    interference_speeds_cached(
        core->view.constants ? core->view.constants : &interference_measured, sharers, n, speeds);
    for (int i = 0; i < n; i++)
        ret_delays[i] = gpu_sharer_slowdown(core->view.constants, &sharers[i], speeds[i]) - 1;
}

static bool is_sum_lower(const struct core *core, struct crowd *crowd)
{
    struct sharer others[GPU_SHARERS_MAX];
    double before[GPU_SHARERS_MAX], after[GPU_SHARERS_MAX], with = 0, without = 0;
    for (int i = 0, n = 0; i < crowd->n; i++)
        if (i != crowd->own)
            others[n++] = crowd->sharers[i];
    predict_delays(core, crowd->sharers, crowd->n, before);
    predict_delays(core, others, crowd->n - 1, after);
    for (int i = 0, n = 0; i < crowd->n; i++) {
        with += 1 / crowd->measured[i];
        if (i == crowd->own)
            continue;
        double left = before[i] > 0 ? after[n] / before[i] : 1;
        without += 1 / (1 + (crowd->measured[i] - 1) * left);
        n++;
    }
    return without > with * GAIN_MIN;
}

static bool is_any_over_limit(const struct core *core, const struct crowd *crowd)
{
    bool is_limited = crowd->are_known && core->settings.policy->limits_slowdown;
    for (int i = 0; i < crowd->n && is_limited; i++)
        if (crowd->measured[i] > core->settings.conditions.slowdown_max * PROMISE_TOLERANCE)
            return true;
    return false;
}

/* Does way 1 count? */
static bool goes_by_sum(const struct core *core, const struct crowd *crowd)
{
    return !crowd->are_known || core->settings.policy->limits_slowdown;
}

bool core_is_one_too_many(const struct core *core, const struct task *task, int64_t now_us)
{
    struct crowd crowd;
    return core->settings.thins_out && core->settings.can_suspend && task->n_gpus == 1 &&
           list_crowd(core, task, now_us, &crowd) &&
           (is_any_over_limit(core, &crowd) ||
               (goes_by_sum(core, &crowd) && is_sum_lower(core, &crowd)));
}

const struct task *core_slowest_beside(const struct core *core, const struct task *task)
{
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    const struct task *slowest = NULL;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct task *other = core_find_task(core, gpu->residents[i].task);
        if (other == task || gpu->residents[i].is_stopped)
            continue;
        if (!slowest || other->run->promise.slowdown.value > slowest->run->promise.slowdown.value)
            slowest = other;
    }
    return slowest;
}
