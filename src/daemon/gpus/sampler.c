/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the GPUs: in a thread of the loop's pool, since a sick driver may take its time to
 * answer; then attributes processes to tasks and feeds the core.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/daemon.h"

/* Of one processor, for SM activity: with the rest of a look it stays under half a per cent. */
#define GPM_SHARE 0.0032

/* ---- which GPUs ---- */

static struct gpu_identity identity_of(const struct gpu_info *gpu)
{
    struct gpu_identity id = {.is_place = gpu->is_place, .is_mig_instance = gpu->is_mig};
    snprintf(id.uuid, sizeof id.uuid, "%s", gpu->uuid);
    snprintf(id.label, sizeof id.label, "%.15s", gpu->index);
    snprintf(id.name, sizeof id.name, "%.63s", gpu->name);
    id.one_process = gpu->compute_mode == GPU_COMPUTE_EXCLUSIVE_PROCESS ||
                     gpu->compute_mode == GPU_COMPUTE_EXCLUSIVE_THREAD;
    id.mem_total_bytes = (int64_t)reading_or(gpu->mem_total_bytes, 0);
    return id;
}

static int view_of(const struct daemon *daemon, const char *uuid)
{
    const struct cluster_view *view = core_view(daemon->core);
    for (int i = 0; i < view->n_gpus; i++)
        if (strcmp(view->gpus[i].id.uuid, uuid) == 0)
            return i;
    return -1;
}

static bool is_in_set(const struct gpu_set *set, const char *uuid)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->gpu[i].uuid, uuid) == 0)
            return true;
    return false;
}

/* Otherwise an instance that is not listed may be there all the same. */
static bool knows_all_instances(const struct gpu_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (!set->gpu[i].is_mig && !set->gpu[i].instances_known)
            return false;
    return true;
}

/* Instances that were places once, also before this daemon was started. Returns how many. */
static int list_gone(const struct daemon *daemon, struct gpu_identity *ret_list)
{
    const struct cluster_view *view = core_view(daemon->core);
    int n = 0;
    if (!knows_all_instances(daemon->gpus))
        return 0;
    for (int i = 0; i < view->n_gpus; i++) {
        if (!view->gpus[i].id.is_mig_instance || is_in_set(daemon->gpus, view->gpus[i].id.uuid))
            continue;
        ret_list[n] = view->gpus[i].id;
        ret_list[n].is_gone = true;
        ret_list[n++].is_place = false;
    }
    return n;
}

static int tell_core(struct daemon *daemon)
{
    size_t most = daemon->gpus->count + (size_t)core_view(daemon->core)->n_gpus;
    struct gpu_identity *list = calloc(most, sizeof *list);
    if (!list)
        return -ENOMEM;
    struct event event = driver_event(daemon->driver, EVENT_GPUS, 0);
    event.gpus.list = list;
    for (size_t i = 0; i < daemon->gpus->count; i++)
        if (gpu_info_is_listed(&daemon->gpus->gpu[i], daemon->config.gpus))
            list[event.gpus.n++] = identity_of(&daemon->gpus->gpu[i]);
    event.gpus.n += list_gone(daemon, list + event.gpus.n);
    int r = driver_feed(daemon->driver, &event, NULL);
    free(list);
    for (size_t i = 0; i < daemon->gpus->count; i++) {
        bool managed = gpu_info_is_listed(&daemon->gpus->gpu[i], daemon->config.gpus);
        daemon->gpu_states[i].view = managed ? view_of(daemon, daemon->gpus->gpu[i].uuid) : -1;
    }
    return r;
}

static int tell_core_of_none(struct daemon *daemon)
{
    struct event event = driver_event(daemon->driver, EVENT_GPUS, 0);
    event.gpus.list = NULL;
    event.gpus.n = 0;
    return driver_feed(daemon->driver, &event, NULL);
}

static int set_up_activity(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    int64_t period_us = config->sample_period_us;
    if (period_us < config->gpm_interval_us)
        period_us = config->gpm_interval_us;
    gpu_set_gpm_interval(daemon->gpus, config->gpm_interval_us);
    gpu_set_limit_overhead(daemon->gpus, GPM_SHARE);
    if (strcmp(config->dcgmi, "none") == 0)
        return 0;
    return gpu_set_use_dcgmi(daemon->gpus, config->dcgmi, period_us);
}

int sampler_open(struct daemon *daemon, struct fault *fault)
{
    const char *library = daemon->config.nvml_library;
    int r = gpu_set_open(*library ? library : NULL, fault, &daemon->gpus);
    if (r < 0)
        return r;
    if (r > 0) {
        snprintf(daemon->gpus_why, sizeof daemon->gpus_why, "%s", fault->text);
        log_warning("no GPUs: %s", fault->text);
        return tell_core_of_none(daemon);
    }
    if (set_up_activity(daemon) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    daemon->gpu_states = calloc(daemon->gpus->count, sizeof *daemon->gpu_states);
    if (!daemon->gpu_states || tell_core(daemon) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    samples_open(daemon);
    return 0;
}

/* ---- other GPUs than before ---- */

static void gpu_state_fini(struct gpu_state *state)
{
    gpu_sample_fini(&state->sample);
    gpu_sample_fini(&state->incoming);
    free(state->foreign);
    free(state->shares);
    free(state->shares_before);
    series_close(state->series);
    *state = (struct gpu_state){0};
}

static const char *compute_mode_name(enum gpu_compute_mode mode)
{
    static const char *const names[] = {
        "Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    return mode >= 0 && mode <= GPU_COMPUTE_EXCLUSIVE_PROCESS ? names[mode] : "not known";
}

static void say_changed_modes(const struct gpu_info *before, const struct gpu_info *now)
{
    if (strcmp(before->uuid, now->uuid) != 0 || before->is_mig)
        return;
    if (before->compute_mode != now->compute_mode)
        log_info(
            "GPU %s: its compute mode is %s now", now->index, compute_mode_name(now->compute_mode));
    if (before->mig_mode != now->mig_mode)
        log_info("GPU %s: MIG is %s now", now->index, now->mig_mode == GPU_MIG_ON ? "on" : "off");
}

static void say_change(const struct gpu_set *before, const struct gpu_set *now)
{
    for (size_t i = 0; i < before->count; i++)
        for (size_t k = 0; k < now->count; k++)
            say_changed_modes(&before->gpu[i], &now->gpu[k]);
    for (size_t i = 0; i < before->count; i++)
        if (before->gpu[i].is_mig && !is_in_set(now, before->gpu[i].uuid))
            log_warning("GPU %s (%s, %s) is not there any more", before->gpu[i].index,
                before->gpu[i].profile, before->gpu[i].uuid);
    for (size_t i = 0; i < now->count; i++)
        if (now->gpu[i].is_mig && !is_in_set(before, now->gpu[i].uuid))
            log_info("GPU %s (%s, %s) is there now", now->gpu[i].index, now->gpu[i].profile,
                now->gpu[i].uuid);
}

/* What is known of a GPU stays with it. */
static void move_states(struct gpu_state *to, const struct gpu_set *now, struct gpu_state *from,
    const struct gpu_set *before)
{
    for (size_t i = 0; i < now->count; i++) {
        for (size_t k = 0; k < before->count; k++) {
            if (strcmp(now->gpu[i].index, before->gpu[k].index) != 0 ||
                strcmp(now->gpu[i].uuid, before->gpu[k].uuid) != 0)
                continue;
            to[i] = from[k];
            from[k] = (struct gpu_state){0};
        }
    }
    for (size_t k = 0; k < before->count; k++)
        gpu_state_fini(&from[k]);
    free(from);
}

/* Without the memory for it the daemon cannot know its GPUs any more. */
static void take_up(struct daemon *daemon, struct gpu_set *now)
{
    struct gpu_set *before = daemon->gpus;
    struct gpu_state *states = calloc(now->count, sizeof *states);
    if (!states) {
        log_error("out of memory: going down; running tasks go on and are found again");
        abort();
    }
    say_change(before, now);
    move_states(states, now, daemon->gpu_states, before);
    daemon->gpu_states = states;
    daemon->gpus = now;
    gpu_set_close(before);
    tell_core(daemon);
    samples_open(daemon);
}

const char *sampler_why_gone(const struct daemon *daemon, int view)
{
    if (core_view(daemon->core)->gpus[view].id.is_gone)
        return "the MIG instance is not there any more";
    for (size_t i = 0; daemon->gpus && i < daemon->gpus->count; i++) {
        const struct gpu_sample *sample = &daemon->gpu_states[i].sample;
        if (daemon->gpu_states[i].view == view && sample->health == GPU_HEALTH_LOST)
            return sample->health_reason;
    }
    return NULL;
}

/* ---- what follows from a look ---- */

/* Once for each change: what is wrong with a GPU, and that it is well again. */
static void watch_trouble(struct gpu_state *state, const struct gpu_info *info)
{
    const char *text = state->sample.trouble.text;
    if (state->sample.health != GPU_HEALTH_OK || strcmp(text, state->trouble_said) == 0)
        return;
    if (!*text)
        log_info("GPU %s: nothing is wrong with it any more", info->index);
    else
        log_warning("GPU %s: %s%s", info->index, text,
            state->sample.trouble.is_serious ? "; it takes no task" : "");
    snprintf(state->trouble_said, sizeof state->trouble_said, "%s", text);
}

static void feed_gpu(struct daemon *daemon, size_t i)
{
    struct gpu_state *state = &daemon->gpu_states[i];
    const struct gpu_sample *seen = &state->sample;
    struct task_memory tasks[RESIDENTS_SEEN_MAX];
    if (state->view < 0 || seen->health == GPU_HEALTH_SILENT)
        return;
    struct event event = driver_event(daemon->driver, EVENT_SAMPLE, 0);
    event.sample = (struct core_sample){
        .gpu = state->view,
        .lost = seen->health == GPU_HEALTH_LOST || seen->health == GPU_HEALTH_GONE,
        .faulty = seen->trouble.is_serious,
        .mem_used_bytes = seen->mem_used_bytes,
        .smact = seen->smact,
        .utilisation = seen->utilisation,
        .tasks = tasks,
    };
    attribute(daemon, state, &event.sample);
    usage_take(daemon, state);
    driver_feed(daemon->driver, &event, NULL);
}

/* What its tasks use on all their GPUs together, as the core has it from the samples. */
static void update_task_memory(struct daemon *daemon)
{
    const struct cluster_view *view = core_view(daemon->core);
    for (int i = 0; i < view->n_gpus; i++)
        for (int k = 0; k < view->gpus[i].n_residents; k++) {
            struct job *job = job_find(daemon, view->gpus[i].residents[k].task);
            if (job)
                job->mem_used_bytes = READING_NONE;
        }
    for (int i = 0; i < view->n_gpus; i++)
        for (int k = 0; k < view->gpus[i].n_residents; k++) {
            const struct resident *resident = &view->gpus[i].residents[k];
            struct job *job = job_find(daemon, resident->task);
            if (!job || !resident->mem_used_bytes.valid)
                continue;
            double sum = reading_or(job->mem_used_bytes, 0) + resident->mem_used_bytes.value;
            job->mem_used_bytes = reading_of(sum);
            if (sum > reading_or(job->mem_peak_bytes, 0)) {
                job->mem_peak_bytes = reading_of(sum);
                job->peak_gpu = i;
                job->peak_whole = view->gpus[i].exclusive_for == job->id;
            }
        }
}

/* Energy and activity count for as long as there were tasks that had not ended. */
static void account(struct daemon *daemon)
{
    bool lived = daemon->lived;
    daemon->lived = core_next_task(daemon->core, 0) != NULL;
    for (size_t i = 0; i < daemon->gpus->count; i++) {
        struct gpu_state *state = &daemon->gpu_states[i];
        const struct gpu_sample *seen = &state->sample;
        if (state->view < 0)
            continue;
        if (lived && seen->energy_j.valid && state->energy_j.valid)
            daemon->energy_j += seen->energy_j.value - state->energy_j.value;
        if (lived && seen->smact.valid) {
            daemon->smact_sum += seen->smact.value;
            daemon->smact_n++;
        }
        if (seen->energy_j.valid)
            state->energy_j = seen->energy_j;
    }
}

static void look(uv_work_t *work)
{
    struct daemon *daemon = work->data;
    for (size_t i = 0; i < daemon->gpus->count; i++)
        gpu_set_sample(daemon->gpus, i, &daemon->gpu_states[i].incoming);
    if (gpu_set_renew(daemon->gpus, daemon->look_closely, &daemon->gpus_next) != GPU_SET_CHANGED)
        daemon->gpus_next = NULL;
}

/* No other look begins meanwhile: it would be at what is closed here. */
static void take_in(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->gpus->count; i++) {
        struct gpu_state *state = &daemon->gpu_states[i];
        struct gpu_sample last = state->sample;
        state->sample = state->incoming;
        state->incoming = last;
    }
    account(daemon);
    for (size_t i = 0; i < daemon->gpus->count; i++) {
        watch_trouble(&daemon->gpu_states[i], &daemon->gpus->gpu[i]);
        usage_measure(daemon, i);
        feed_gpu(daemon, i);
        unused_watch(daemon, &daemon->gpu_states[i]);
        samples_take(daemon, i);
    }
    update_task_memory(daemon);
    usage_save_sometimes(daemon);
    if (daemon->gpus_next) {
        take_up(daemon, daemon->gpus_next);
        daemon->gpus_next = NULL;
        daemon->sample_again = true;
    }
}

static void on_looked(uv_work_t *work, int status)
{
    struct daemon *daemon = work->data;
    if (!daemon->stopping)
        take_in(daemon);
    daemon->sampling = false;
    if (daemon->stopping)
        return;
    daemon->looks_ended = daemon->looks_begun;
    runner_looked(daemon);
    if (daemon->sample_again)
        sampler_look_now(daemon);
}

/* While no look is under way. */
static void forget_cleared(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->gpus->count; i++) {
        if (daemon->gpu_states[i].xids_cleared)
            gpu_set_forget_xids(daemon->gpus, i);
        daemon->gpu_states[i].xids_cleared = false;
    }
}

void sampler_look_now(struct daemon *daemon)
{
    if (!daemon->gpus || daemon->stopping)
        return;
    daemon->sample_again = daemon->sampling;
    if (daemon->sampling)
        return;
    forget_cleared(daemon);
    daemon->sampling = true;
    daemon->looks_begun++;
    daemon->look_closely = daemon->exits_awaiting_look > 0;
    daemon->sample_work.data = daemon;
    uv_queue_work(&daemon->loop, &daemon->sample_work, look, on_looked);
}

int64_t sampler_look_closely(struct daemon *daemon)
{
    if (!daemon->gpus || daemon->stopping)
        return 0;
    daemon->exits_awaiting_look++;
    sampler_look_now(daemon);
    return daemon->looks_begun + daemon->sample_again;
}

/* A look that takes longer than a period is left to end; the core sees by its age that nothing new
 * came. */
static void on_period(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    if (!daemon->sampling)
        sampler_look_now(daemon);
}

void sampler_start(struct daemon *daemon)
{
    uint64_t period_ms = (uint64_t)(daemon->config.sample_period_us / MS_US);
    if (!daemon->gpus)
        return;
    sampler_look_now(daemon);
    uv_timer_start(&daemon->sample_timer, on_period, period_ms, period_ms);
}

void sampler_close(struct daemon *daemon)
{
    for (size_t i = 0; daemon->gpus && i < daemon->gpus->count; i++)
        gpu_state_fini(&daemon->gpu_states[i]);
    free(daemon->gpu_states);
    gpu_set_close(daemon->gpus);
    gpu_set_close(daemon->gpus_next);
}
