/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample updates the view of its GPU: health, memory, the monitoring windows, the memory of each
 * resident (residence.h), and the activity of a task alone on the GPU. The memory in use is that of
 * the GPU's memory domain: the sample updates it for all places of the domain at once, so that what
 * a resident takes does not look free on another place until that is sampled.
 *
 * Most samples change nothing that a placement depends on, and a scheduling pass after each would
 * be most of the daemon's work. So a sample causes a pass only when it may turn a policy's
 * PLACE_WAIT into PLACE_NOW. By the contract of `choose` (core/policy.h) that takes one of these:
 *
 *   1. The GPU had no recent sample before, or its health has changed.
 *   2. An activity level became known, unknown or 0, crossed smact_max, or fell above that by a
 *      step (with smact_sum_max).
 *   3. The number of external processes has changed.
 *   4. Memory in use has fallen: of the GPU, of a resident, or of what no resident accounts for.
 *   5. A resident has settled; or, where tasks start beside others, has shown how active it is or,
 *      of an array, what it has taken; or the activity of its GPU has fallen while it is starting.
 *   6. A task alone on its GPUs has shown another SM activity than expected.
 *   7. Where they are limited: power or PCIe traffic has fallen, or became known or unknown.
 *   8. The GPU is reserved, and may admit the head of the queue later than predicted: external
 *      processes have appeared, or have taken a step more memory.
 *
 * A resident that takes memory it is known to need, and activity that varies on one side of the
 * limit, cause none. While a task recovers, or GPUs are reserved, core.c also runs passes without
 * these.
 */
#include "core/state/apply_sample.h"

#include <errno.h>
#include <math.h>

#include "base/units.h"
#include "core/gpu_sharers.h"
#include "core/memory_domain.h"
#include "core/state/charges.h"
#include "core/state/claims.h"
#include "core/state/library_use.h"
#include "core/state/resident_memory.h"
#include "core/state/residents.h"
#include "core/state/state.h"

/* What the driver lists of a task's processes, where it lists none. */
static const struct task_memory unlisted;

static const struct task_memory *listed_of(
    const struct resident *resident, const struct core_sample *sample)
{
    for (int i = 0; i < sample->n_tasks; i++)
        if (sample->tasks[i].task == resident->task)
            return &sample->tasks[i];
    return &unlisted;
}

/*
 * What a resident uses, as NVIDIA's driver reports it. Where it does not, a resident alone in the
 * memory domain uses all that is in use. A task that is missing from a list of processes is
 * unknown: its processes may be hidden, or not recognised as its own.
 */
static struct reading used_by(
    const struct gpu_view *gpu, const struct task_memory *listed, const struct core_sample *sample)
{
    struct reading external = sample->external_processes;
    if (listed->mem_used_bytes.valid)
        return listed->mem_used_bytes;
    bool is_hidden = listed == &unlisted && external.valid;
    bool is_alone = gpu->n_residents == 1 && !memory_domain_has_others(gpu) &&
                    !(external.valid && external.value > 0);
    return is_alone && !is_hidden ? gpu->mem_used_bytes : READING_NONE;
}

/* Chosen: samples since the last change of residents that outweigh the whole window. */
#define MIX_SAMPLES_ENOUGH 3

/* A level of activity, and what it is computed from. */
struct recent_activity {
    int64_t since_us;
    struct reading recent; /* the figure since then; not valid: too few samples are */
};

static int64_t earlier_of(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* The activity of the present tasks. Where tasks start beside others, one comes before the last has
 * been seen long enough: then the level is that of the newest samples, not of the whole window, in
 * which the GPU may have been idle. Inlined: twice for each sample. */
static inline __attribute__((always_inline)) struct recent_activity update_level(
    const struct core *core, const struct gpu_view *gpu, const struct window *window,
    struct reading *level)
{
    enum window_statistic how = core->settings.statistic;
    int64_t since_us = gpu->mix_since_us;
    if (core->settings.conditions.starting_max > 0)
        since_us = earlier_of(since_us, window_newest_us(window, MIX_SAMPLES_ENOUGH));
    struct reading recent = window_recent(window, how, since_us, MIX_SAMPLES_ENOUGH);
    *level = recent.valid ? recent : window_recent(window, how, INT64_MIN, 1);
    return (struct recent_activity){since_us, recent};
}

/* Since when a task has been alone on all of its GPUs, this one included; TIME_NEVER: it is not. A
 * task of several is as slow on each as on the slowest. */
static int64_t alone_since_us(const struct cluster_view *view, const struct resident *only)
{
    int64_t since_us = 0;
    for (int i = 0; i < only->gpus; i++) {
        const struct gpu_view *gpu = &view->gpus[only->places[i]];
        bool is_alone = gpu->n_residents == 1 && reading_assume(gpu->external_processes, 1) <= 0;
        if (!is_alone)
            return TIME_NEVER;
        since_us = gpu->mix_since_us > since_us ? gpu->mix_since_us : since_us;
    }
    return since_us;
}

/* Is the resident's SMACT that of what is seen already? Mostly: to compute it takes longer than all
 * else that a sample does. Notes what it is to be computed from. */
static bool is_learned(const struct cluster_view *view, struct resident *resident, double seen)
{
    const struct interference_constants *constants = view->constants ? view->constants
                                                                     : &interference_measured;
    const struct measured_smact before = resident->measured;
    resident->measured = (struct measured_smact){seen, constants->launch_cost};
    return seen > 0 && seen == before.seen && constants->launch_cost == before.launch_cost;
}

/* The mean since then. Mostly that is what the level was computed from. */
static struct reading mean_since(const struct core *core, const struct gpu_view *gpu,
    const struct recent_activity *smact, int64_t since_us)
{
    bool is_computed = core->settings.statistic == WINDOW_MEAN && smact->since_us == since_us &&
                       smact->recent.valid;
    return is_computed ? smact->recent
                       : window_mean_since(&gpu->smact, since_us, MIX_SAMPLES_ENOUGH);
}

/* A settled task that is alone on its GPUs shows its activity: the measurement replaces what was
 * given for it, as that of a plain process. Of places that share their memory the activity of all
 * together is measured, as a part of all their SMs: nothing is learned. Returns whether it differs.
 */
static bool learn_demand(
    const struct core *core, struct gpu_view *gpu, const struct recent_activity *smact)
{
    const struct cluster_view *view = &core->view;
    struct resident *only = gpu->n_residents == 1 ? &gpu->residents[0] : NULL;
    if (!only || only->residence != RESIDENCE_SETTLED || memory_domain_is_shared(gpu))
        return false;
    int64_t since_us = alone_since_us(view, only);
    if (since_us == TIME_NEVER)
        return false;
    struct reading seen = mean_since(core, gpu, smact, since_us);
    if (!seen.valid || is_learned(view, only, seen.value))
        return false;
    seen.value = gpu_sharer_smact(
        view->constants, &only->expect, only->sharing, only->thread_percent, seen.value);
    bool is_new = !reading_equals(seen, only->expect.smact);
    only->expect.smact = seen;
    return is_new;
}

/* ---- does the sample need a scheduling pass? ---- */

static bool has_fallen(struct reading before, struct reading now)
{
    return before.valid != now.valid || (now.valid && now.value < before.value);
}

/* Verdicts depend on an activity level only by its class. */
enum activity_class { ACTIVITY_UNKNOWN, ACTIVITY_NONE, ACTIVITY_UNDER_LIMIT, ACTIVITY_OVER_LIMIT };

static enum activity_class activity_class(struct reading level, double max)
{
    if (!level.valid)
        return ACTIVITY_UNKNOWN;
    if (level.value <= 0)
        return ACTIVITY_NONE;
    return level.value <= max + POLICY_ROUNDING ? ACTIVITY_UNDER_LIMIT : ACTIVITY_OVER_LIMIT;
}

/* Mostly a level stays as it is: then nothing that follows from it is compared. */
static bool has_stayed(struct reading before, struct reading now)
{
    return before.valid == now.valid && before.value == now.value;
}

static inline __attribute__((always_inline)) bool changes_class(
    struct reading before, struct reading now, double max)
{
    return !has_stayed(before, now) && activity_class(before, max) != activity_class(now, max);
}

static struct reading in_steps(struct reading level, double step)
{
    return level.valid ? reading_of(floor(level.value / step)) : READING_NONE;
}

/* Chosen: watts that a GPU has to draw less for a pass, above the noise of a mean. */
#define SERVER_POWER_STEP_W 10

static bool falls_by_step(struct reading before, struct reading now)
{
    return !has_stayed(before, now) &&
           has_fallen(in_steps(before, SERVER_POWER_STEP_W), in_steps(now, SERVER_POWER_STEP_W));
}

/* Over smact_max another task may start the less there is, where the sum with its own counts. */
static struct reading over_level(const struct conditions *conditions, struct reading level)
{
    bool counts = level.valid && level.value > conditions->smact_max;
    return counts ? reading_of(activity_step(level.value)) : READING_NONE;
}

static bool falls_over_max(
    const struct conditions *conditions, struct reading before, struct reading now)
{
    return conditions->smact_sum_max > 0 && !has_stayed(before, now) &&
           has_fallen(over_level(conditions, before), over_level(conditions, now));
}

/* The inputs of a policy's answer that a sample can change, as they were before it. */
struct admission_state {
    enum view_health health;
    int64_t sampled_us;
    struct reading smact, utilisation; /* levels */
    struct reading starting_level;     /* of activity, while tasks are starting */
    struct reading used_bytes, external_processes;
    struct reading unaccounted_bytes; /* used by no resident, as far as is known */
    bool is_used_externally;          /* if it is reserved: of others it is not tested */
};

/* While tasks start beside others, the level itself counts, and not only its class. */
static struct reading starting_level(
    const struct conditions *conditions, const struct gpu_view *gpu)
{
    bool is_any = conditions->starting_max > 0 && gpu_view_unsettled(gpu);
    struct reading level = gpu->smact_level.valid ? gpu->smact_level : gpu->utilisation_level;
    return is_any ? level : READING_NONE;
}

static bool is_reserved_and_used(const struct core *core, const struct gpu_view *gpu)
{
    return gpu->claims[CLAIM_HEAD] && gpu_view_is_used_externally(gpu, core->settings.settle_us);
}

/* Inlined: a sample is a few hundred instructions. */
static inline __attribute__((always_inline)) struct admission_state admission_state(
    const struct core *core, const struct gpu_view *gpu)
{
    return (struct admission_state){
        .health = gpu->health,
        .sampled_us = gpu->sampled_us,
        .smact = gpu->smact_level,
        .utilisation = gpu->utilisation_level,
        .starting_level = starting_level(&core->settings.conditions, gpu),
        .used_bytes = gpu->mem_used_bytes,
        .external_processes = gpu->external_processes,
        .unaccounted_bytes = gpu_view_unaccounted_bytes(gpu),
        .is_used_externally = is_reserved_and_used(core, gpu),
    };
}

/* `residence`, `mem_used_bytes`: before the sample */
static bool resident_may_admit(
    enum residence residence, struct reading mem_used_bytes, const struct resident *now)
{
    bool has_settled = residence_has_settled(now->residence) && !residence_has_settled(residence);
    return has_settled || has_fallen(mem_used_bytes, now->mem_used_bytes);
}

static inline __attribute__((always_inline)) bool gpu_may_admit(
    const struct core *core, const struct gpu_view *gpu, const struct admission_state *before)
{
    const struct conditions *conditions = &core->settings.conditions;
    bool was_stale = gpu->sampled_us - before->sampled_us > conditions->sample_valid_us;
    return was_stale || before->health != gpu->health ||
           changes_class(before->smact, gpu->smact_level, conditions->smact_max) ||
           changes_class(before->utilisation, gpu->utilisation_level, conditions->smact_max) ||
           falls_over_max(conditions, before->smact, gpu->smact_level) ||
           has_fallen(before->starting_level, starting_level(conditions, gpu)) ||
           !reading_equals(before->external_processes, gpu->external_processes) ||
           has_fallen(before->used_bytes, gpu->mem_used_bytes) ||
           has_fallen(before->unaccounted_bytes, gpu_view_unaccounted_bytes(gpu));
}

/* Chosen: bytes that external processes have to take for another reservation, above what varies. */
#define EXTERNAL_MEMORY_STEP_BYTES (256 * MIB)

/* External processes appear, or take more memory than when the GPU was reserved. */
static bool gpu_may_admit_later(
    const struct core *core, const struct gpu_view *gpu, const struct admission_state *before)
{
    struct reading then = gpu->unaccounted_when_reserved;
    struct reading bytes = gpu_view_unaccounted_bytes(gpu);
    if (!is_reserved_and_used(core, gpu))
        return false;
    return !before->is_used_externally || bytes.valid != then.valid ||
           (bytes.valid && bytes.value >= then.value + EXTERNAL_MEMORY_STEP_BYTES);
}

/* ---- the sample ---- */

/* A sample that comes late may have missed memory. */
static void note_memory(struct resident *resident, bool is_late, int64_t now_us)
{
    struct reading used = resident->mem_used_bytes;
    if (!used.valid || used.value > 0)
        resident->empty_since_us = 0;
    else if (!resident->empty_since_us || is_late)
        resident->empty_since_us = now_us;
    if (used.valid && used.value > resident->most_bytes)
        resident->most_bytes = used.value;
}

/* Returns whether the resident has just been seen long enough to show its activity, or, of an
 * array, has been seen for the first time: it shows what its siblings need. */
static bool count_risen(
    const struct core *core, const struct core_sample *sample, struct resident *resident)
{
    if (sample->smact_repeats || !residence_has_risen(resident->residence) ||
        resident->samples_risen == RISEN_SAMPLES_ENOUGH)
        return false;
    int n = ++resident->samples_risen;
    return (n == RISEN_SAMPLES_ENOUGH || (n == 1 && resident->array)) &&
           core->settings.conditions.starting_max > 0;
}

/* Are processes of the resident listed, or were some? Otherwise nothing is new of the library in
 * them. */
static bool has_processes(const struct resident *resident, const struct task_memory *listed)
{
    return listed->hooked + listed->unhooked + resident->hooked + resident->unhooked > 0;
}

/* is_late: the sample before was too old to count */
static void update_residents(struct core *core, bool is_late, struct gpu_view *gpu,
    const struct core_sample *sample, int64_t now_us)
{
    bool may_admit = false, any_inactive = false, has_several_clients = false;
    for (int i = 0; i < gpu->n_residents; i++) {
        struct resident *resident = &gpu->residents[i];
        enum residence residence = resident->residence;
        struct reading before = resident->mem_used_bytes;
        const struct task_memory *listed = listed_of(resident, sample);
        may_admit |= listed->mps_clients < resident->mps_clients;
        resident->mem_used_bytes = used_by(gpu, listed, sample);
        resident->mps_clients = listed->mps_clients;
        has_several_clients |= listed->mps_clients > 1;
        may_admit |= listed->is_inactive && !resident->is_inactive;
        resident->is_inactive = listed->is_inactive;
        any_inactive |= listed->is_inactive;
        note_memory(resident, is_late, now_us);
        if (has_processes(resident, listed))
            core_note_library_use(core, resident, listed);
        if (resident_follow_memory(&core->settings, resident, now_us))
            gpu->mix_since_us = now_us;
        may_admit |= count_risen(core, sample, resident) ||
                     resident_may_admit(residence, before, resident);
    }
    core->pass_needed |= may_admit;
    core->any_inactive |= any_inactive;
    core->view.has_several_clients |= has_several_clients;
}

static void set_memory_used(struct gpu_view *gpu, struct reading used_bytes)
{
    gpu->mem_used_bytes = used_bytes;
    for (struct gpu_view *at = memory_domain_next(gpu); at != gpu && used_bytes.valid;
         at = memory_domain_next(at))
        at->mem_used_bytes = used_bytes;
}

/* Returns 0 or -ENOMEM. */
static int update_load_level(const struct core *core, const struct gpu_view *gpu,
    struct window *window, struct reading value, int64_t now_us, struct reading *level)
{
    const struct core_settings *settings = &core->settings;
    if (window_add(window, now_us, settings->window_us, value) < 0)
        return -ENOMEM;
    *level = window_level(window, settings->statistic, gpu->mix_since_us, MIX_SAMPLES_ENOUGH);
    return 0;
}

static int update_power(
    struct core *core, struct gpu_view *gpu, const struct core_sample *sample, int64_t now_us)
{
    struct reading before = gpu->power_level;
    double max = core->settings.conditions.power_max * gpu->id.power_limit_w;
    int r = update_load_level(core, gpu, &gpu->power, sample->power_w, now_us, &gpu->power_level);
    core->pass_needed |= changes_class(before, gpu->power_level, max) ||
                         falls_by_step(before, gpu->power_level);
    return r;
}

static int update_pcie(
    struct core *core, struct gpu_view *gpu, const struct core_sample *sample, int64_t now_us)
{
    struct reading before = gpu->pcie_level;
    double max = (double)core->settings.conditions.pcie_max_bytes;
    int r = update_load_level(
        core, gpu, &gpu->pcie, sample->pcie_bytes_per_s, now_us, &gpu->pcie_level);
    core->pass_needed |= changes_class(before, gpu->pcie_level, max);
    return r;
}

/* Nothing is kept of what no setting limits. */
static int update_load(
    struct core *core, struct gpu_view *gpu, const struct core_sample *sample, int64_t now_us)
{
    const struct conditions *conditions = &core->settings.conditions;
    int r = 0;
    if (conditions->server_power_max_w || conditions->power_max > 0)
        r = update_power(core, gpu, sample, now_us);
    if (r == 0 && conditions->pcie_max_bytes)
        r = update_pcie(core, gpu, sample, now_us);
    return r;
}

static enum view_health health_of(const struct core_sample *sample, const struct gpu_view *gpu)
{
    if (sample->lost)
        return VIEW_LOST;
    if (sample->faulty)
        return VIEW_FAULTY;
    return gpu->id.is_out_of_use ? VIEW_OUT_OF_USE : VIEW_OK;
}

int core_apply_sample(struct core *core, const struct event *event)
{
    const struct core_sample *sample = &event->sample;
    if (sample->gpu < 0 || sample->gpu >= core->view.n_gpus)
        return CORE_NOT_NOW;

    struct gpu_view *gpu = &core->view.gpus[sample->gpu];
    struct admission_state before = admission_state(core, gpu);
    if (!gpu->claims[CLAIM_EXCLUSIVE]) /* otherwise the sample does not change the charges */
        core_accrue(core, gpu, event->time_us);
    gpu->health = health_of(sample, gpu);
    gpu->sampled_us = event->time_us;
    set_memory_used(gpu, sample->mem_used_bytes);
    gpu->external_processes = sample->external_processes;
    int64_t length = core->settings.window_us;
    bool is_measured = !sample->smact_repeats;
    if ((is_measured && window_add(&gpu->smact, event->time_us, length, sample->smact) < 0) ||
        window_add(&gpu->utilisation, event->time_us, length, sample->utilisation) < 0)
        return -ENOMEM;

    bool is_late = gpu->sampled_us - before.sampled_us > core->settings.conditions.sample_valid_us;
    update_residents(core, is_late, gpu, sample, event->time_us);
    struct recent_activity smact = update_level(core, gpu, &gpu->smact, &gpu->smact_level);
    update_level(core, gpu, &gpu->utilisation, &gpu->utilisation_level);
    if (update_load(core, gpu, sample, event->time_us) < 0)
        return -ENOMEM;
    core_note_open(core, sample->gpu);
    bool has_learned = learn_demand(core, gpu, &smact);
    core->pass_needed |= has_learned || gpu_may_admit(core, gpu, &before);
    if (gpu->claims[CLAIM_HEAD] && gpu_may_admit_later(core, gpu, &before)) {
        core_release_reservation(core); /* others may admit the head earlier */
        core->pass_needed = true;
    }
    return 0;
}
