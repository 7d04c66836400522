/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tasks are charged for their GPUs (fairness/charge.h), added up for each user in
 * `accrued_us`.
 *
 * The charge of a resident depends on its part of the GPU's activity and memory. So it is taken up
 * to now before anything changes that it depends on: a task comes or goes, stops or computes again,
 * or a sample shows another activity. Samples are not in the log, so a charge decides nothing until
 * decide/record_usage.c has written it there.
 */
#include "core/state/charges.h"

#include <errno.h>

#include "core/memory_domain.h"
#include "core/state/state.h"
#include "core/state/users.h"
#include "fairness/charge.h"

/* A MIG instance is a part of its card, which is no smaller than the largest GPU of the view. */
static double size_of(const struct core *core, const struct gpu_view *gpu)
{
    struct reading largest = core->view.mem_total_max_bytes;
    bool is_part = gpu->id.is_mig_instance && largest.valid;
    return is_part ? (double)gpu->id.mem_total_bytes / largest.value : 1;
}

/*
 * The GPU's activity is divided among its computing residents: by the expected activity of each
 * alone; equally, if one of these is unknown. What is measured of a compute instance is that of all
 * in its memory domain, and is divided among all residents of that.
 */
struct activity {
    struct reading level;
    double weights; /* their sum; 0: equal parts */
    double equal_part;
    double resident_part; /* 1 divided by the number of residents, also of those that are stopped */
};

static struct activity activity_of(const struct gpu_view *gpu)
{
    struct activity activity = {
        .level = gpu->smact_level.valid ? gpu->smact_level : gpu->utilisation_level,
        .equal_part = 1,
        .resident_part = 1};
    bool all_known = true;
    int n = 0, n_residents = 0;
    const struct resident *each;
    struct domain_walk walk = memory_domain_walk(gpu);
    if (gpu->n_residents == 1 && !memory_domain_is_shared(gpu))
        return activity; /* most GPUs */
    while ((each = memory_domain_resident(&walk))) {
        n_residents++;
        if (each->is_stopped)
            continue;
        n++;
        all_known &= each->expect.smact.valid;
        activity.weights += each->expect.smact.value;
    }
    if (!all_known)
        activity.weights = 0;
    activity.equal_part = n > 0 ? 1.0 / n : 0;
    activity.resident_part = 1.0 / n_residents;
    return activity;
}

/* A task that does not compute has no part. */
static struct reading smact_part(const struct activity *activity, const struct resident *resident)
{
    if (!activity->level.valid)
        return READING_NONE;
    if (resident->is_stopped)
        return reading_of(0);
    double part = activity->weights > 0 ? resident->expect.smact.value / activity->weights
                                        : activity->equal_part;
    return reading_of(activity->level.value * part);
}

static struct reading memory_part(const struct gpu_view *gpu, const struct resident *resident)
{
    double total = (double)gpu->id.mem_total_bytes;
    if (total <= 0)
        return READING_NONE;
    if (resident->mem_used_bytes.valid)
        return reading_of(resident->mem_used_bytes.value / total);
    struct reading need = resident->need_bytes;
    return need.valid ? reading_of(need.value / total) : READING_NONE;
}

/* A promise of 1.25 times the time alone is one of 0.8 of the speed; while tasks have given way to
 * it, promised or not, or none may come beside it, it keeps all of the GPU from others. A task that
 * does not compute keeps nothing. */
static double promised_part(const struct resident *resident, int64_t now_us)
{
    double slowdown_max = resident->promise.slowdown_max;
    if (resident->is_stopped)
        return 0;
    if (now_us <= resident->promise.opens_us)
        return 1;
    return slowdown_max > 0 ? 1 / slowdown_max : 0;
}

static void accrue_place(struct core *core, struct gpu_view *gpu, int64_t now_us)
{
    int64_t span_us = now_us - gpu->accrued_us;
    if (span_us <= 0)
        return;
    gpu->accrued_us = now_us;
    if (gpu->n_residents == 0 || !core->settings.usage_half_life_us)
        return;
    const double size_us = size_of(core, gpu) * (double)span_us;
    if (gpu->claims[CLAIM_EXCLUSIVE] == gpu->residents[0].task && gpu->n_residents == 1) {
        gpu->residents[0].user->accrued_us += size_us; /* as charge_rate, sooner */
        return;
    }
    const struct activity activity = activity_of(gpu);
    double rate = 0; /* of the residents from the last change of user on */
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        const struct gpu_use use = {.is_whole = gpu->claims[CLAIM_EXCLUSIVE] == resident->task,
            .equal_part = activity.resident_part,
            .smact = smact_part(&activity, resident),
            .memory = memory_part(gpu, resident),
            .promised = promised_part(resident, now_us)};
        bool is_last = i + 1 == gpu->n_residents || resident[1].user != resident->user;
        rate += charge_rate(&use);
        if (is_last) {
            resident->user->accrued_us += rate * size_us;
            rate = 0;
        }
    }
}

void core_accrue(struct core *core, struct gpu_view *gpu, int64_t now_us)
{
    struct gpu_view *at = gpu;
    do {
        accrue_place(core, at, now_us);
        at = memory_domain_next(at);
    } while (at != gpu);
}

void core_accrue_all(struct core *core, int64_t now_us)
{
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].n_residents)
            accrue_place(core, &core->view.gpus[i], now_us);
}

void core_accrue_suspended(struct core *core, int64_t now_us)
{
    struct reading largest = core->view.mem_total_max_bytes;
    for (int i = 0; i < core->n_tasks; i++) {
        const struct task *task = core->tasks[i];
        if (task->state != TASK_SUSPENDED)
            continue;
        int64_t since_us = core->users->recorded_us;
        since_us = task->run->yield.since_us > since_us ? task->run->yield.since_us : since_us;
        bool is_known = task->run->yield.bytes.valid && largest.valid;
        double part = is_known ? task->run->yield.bytes.value / largest.value : 1;
        core_find_user(core, task->uid)->accrued_us += CHARGE_SUSPENDED * part *
                                                       task->request.gpus *
                                                       (double)(now_us - since_us);
    }
}

/* Replayed time was charged by another process: its charges are in the usage. */
int core_apply_usage(struct core *core, const struct event *event)
{
    struct core_user *user = core_add_user(core, event->usage.uid, event->time_us);
    if (!user)
        return -ENOMEM;
    if (core->replayed)
        core_accrue_all(core, event->time_us);
    user->usage_us = event->usage.usage_us;
    user->usage_at_us = event->time_us;
    user->window = event->usage.window;
    user->window.at_us = event->time_us;
    user->accrued_us = 0;
    core_make_ranks_stale(core, event->time_us);
    return 0;
}
