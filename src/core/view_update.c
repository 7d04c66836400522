/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to the view: monitoring windows, and whether a task has taken its memory. */
#include <errno.h>

#include "base/units.h"
#include "core/core_private.h"

/* Samples of the present mix of tasks that outweigh those of the mix before. */
#define MIX_SAMPLES_ENOUGH 3
/* A process with less has hardly more than its CUDA context: measured contexts run from 287 to 667
 * MiB. */
#define CONTEXT_BYTES (768 * MIB)
/* Growth that counts: an allocator's small segments do not. */
#define GROWTH_BYTES (64 * MIB)
#define GROWTH_SHARE 0.02

static bool same(struct reading a, struct reading b)
{
    return a.valid == b.valid && !(a.valid && (a.value < b.value || a.value > b.value));
}

static bool has_risen(const struct resident *resident, double used)
{
    double enough = resident->need_bytes ? 0.5 * (double)resident->need_bytes
                                         : (double)CONTEXT_BYTES;
    return used >= enough;
}

/*
 * What the resident uses: the driver's word; where the driver does not know, all that the GPU uses
 * when nobody else is there. Of a task missing from a list of processes nothing is known: its own
 * may not be shown, or not as ours.
 */
static struct reading used_by(
    const struct gpu_view *gpu, const struct resident *resident, const struct core_sample *sample)
{
    struct reading foreign = sample->external_processes;
    bool alone = gpu->n_residents == 1 && !(foreign.valid && foreign.value > 0);
    struct reading otherwise = alone ? gpu->mem_used_bytes : READING_NONE;
    for (int i = 0; i < sample->n_tasks; i++)
        if (sample->tasks[i].task == resident->task)
            return sample->tasks[i].mem_used_bytes.valid ? sample->tasks[i].mem_used_bytes
                                                         : otherwise;
    return foreign.valid ? READING_NONE : otherwise;
}

/* Others are held off while it does not show up, and from when it is seen to, no longer than
 * settle_max each. */
static void watch_settling(const struct core_settings *settings, struct gpu_view *gpu,
    struct resident *resident, int64_t now_us)
{
    struct reading used = resident->mem_used_bytes;
    resident->absent |= used.valid && used.value <= 0;
    if (!resident->shown && used.valid && used.value > 0) {
        resident->shown = true;
        resident->held_us = resident->absent ? now_us : resident->held_us;
        resident->settled &= !resident->absent;
    }
    if (resident->settled)
        return;
    if (used.valid &&
        used.value > resident->level_bytes * (1 + GROWTH_SHARE) + (double)GROWTH_BYTES) {
        resident->level_bytes = used.value;
        resident->grew_us = now_us;
    }
    if (!resident->risen && used.valid && has_risen(resident, used.value)) {
        resident->risen = true;
        gpu->mix_since_us = now_us;
    }
    resident->settled = (resident->risen && now_us - resident->grew_us >= settings->settle_us) ||
                        now_us - resident->held_us >= settings->settle_max_us;
}

/*
 * A task that has a GPU to itself shows what it asks for: from then on that counts, whatever was
 * said before. Has it shown anything new?
 */
static bool learn_demand(struct gpu_view *gpu)
{
    struct reading foreign = gpu->external_processes;
    struct resident *only = gpu->n_residents == 1 ? &gpu->residents[0] : NULL;
    if (!only || !only->risen || !only->settled || !foreign.valid || foreign.value > 0)
        return false;
    struct reading seen = window_mean_since(&gpu->smact, gpu->mix_since_us, MIX_SAMPLES_ENOUGH);
    bool is_new = seen.valid && !same(seen, only->expect.smact);
    if (seen.valid)
        only->expect.smact = seen;
    return is_new;
}

/* ---- may somebody fit now who did not? ---- */

static bool has_fallen(struct reading before, struct reading now)
{
    return before.valid != now.valid || (now.valid && now.value < before.value);
}

/* What verdicts hang on of a level of activity: whether it is known, idle, under the limit
 * (core/policy.h). */
static int rank(struct reading level, double max)
{
    if (!level.valid)
        return 0;
    return level.value <= 0 ? 1 : level.value <= max + POLICY_ROUNDING ? 2 : 3;
}

/* What a policy goes by of a GPU, as far as a sample can change it. */
struct standing {
    enum view_health health;
    int64_t sampled_us;
    int smact_rank, utilisation_rank;
    struct reading used_bytes, external_processes;
    struct reading of_others_bytes; /* used by whom is not known */
};

static struct standing standing_of(const struct core *core, const struct gpu_view *gpu)
{
    double max = core->settings.conditions.smact_max;
    struct standing standing = {
        .health = gpu->health,
        .sampled_us = gpu->sampled_us,
        .smact_rank = rank(gpu->smact_level, max),
        .utilisation_rank = rank(gpu->utilisation_level, max),
        .used_bytes = gpu->mem_used_bytes,
        .external_processes = gpu->external_processes,
        .of_others_bytes = gpu->mem_used_bytes,
    };
    for (int i = 0; i < gpu->n_residents; i++)
        standing.of_others_bytes.value -= reading_assume(gpu->residents[i].mem_used_bytes, 0);
    return standing;
}

static bool resident_lets_in(const struct resident *before, const struct resident *now)
{
    return (now->settled && !before->settled) ||
           has_fallen(before->mem_used_bytes, now->mem_used_bytes);
}

/* Memory that residents take of what they need, and activity that changes on one side of the limit,
 * let nobody in. */
static bool lets_in(
    const struct core *core, const struct standing *before, const struct standing *now)
{
    bool was_stale = now->sampled_us - before->sampled_us >
                     core->settings.conditions.sample_valid_us;
    return was_stale || before->health != now->health || before->smact_rank != now->smact_rank ||
           before->utilisation_rank != now->utilisation_rank ||
           !same(before->external_processes, now->external_processes) ||
           has_fallen(before->used_bytes, now->used_bytes) ||
           has_fallen(before->of_others_bytes, now->of_others_bytes);
}

int core_apply_sample(struct core *core, const struct event *event)
{
    const struct core_sample *sample = &event->sample;
    if (sample->gpu < 0 || sample->gpu >= core->view.n_gpus)
        return CORE_NOT_NOW;

    struct gpu_view *gpu = &core->view.gpus[sample->gpu];
    struct standing before = standing_of(core, gpu);
    gpu->health = sample->lost ? VIEW_LOST : sample->faulty ? VIEW_FAULTY : VIEW_OK;
    gpu->sampled_us = event->time_us;
    gpu->mem_used_bytes = sample->mem_used_bytes;
    gpu->external_processes = sample->external_processes;
    int64_t length = core->settings.window_us;
    if (window_add(&gpu->smact, event->time_us, length, sample->smact) < 0 ||
        window_add(&gpu->utilisation, event->time_us, length, sample->utilisation) < 0)
        return -ENOMEM;

    for (int i = 0; i < gpu->n_residents; i++) {
        struct resident *resident = &gpu->residents[i], was = *resident;
        resident->mem_used_bytes = used_by(gpu, resident, sample);
        watch_settling(&core->settings, gpu, resident, event->time_us);
        core->pass_needed |= resident_lets_in(&was, resident);
    }
    enum window_statistic how = core->settings.statistic;
    gpu->smact_level = window_level(&gpu->smact, how, gpu->mix_since_us, MIX_SAMPLES_ENOUGH);
    gpu->utilisation_level = window_level(
        &gpu->utilisation, how, gpu->mix_since_us, MIX_SAMPLES_ENOUGH);
    bool has_learned = learn_demand(gpu);
    struct standing now = standing_of(core, gpu);
    core->pass_needed |= has_learned || lets_in(core, &before, &now);
    return 0;
}
