/*
 * Looks at the GPUs: in a thread of the loop's pool, since a sick driver may take its time to answer; then attributes
 * processes to tasks and feeds the core.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/daemon.h"

/* ---- which GPUs ---- */

static struct gpu_identity identity_of(const struct gpu_info *gpu)
{
    struct gpu_identity id = {.is_place = gpu->is_place, .is_mig_instance = gpu->is_mig};
    snprintf(id.uuid, sizeof id.uuid, "%s", gpu->uuid);
    snprintf(id.label, sizeof id.label, "%.15s", gpu->index);
    snprintf(id.name, sizeof id.name, "%.63s", gpu->name);
    id.one_process =
        gpu->compute_mode == GPU_COMPUTE_EXCLUSIVE_PROCESS || gpu->compute_mode == GPU_COMPUTE_EXCLUSIVE_THREAD;
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

static int tell_core(struct daemon *daemon)
{
    struct gpu_identity *list = calloc(daemon->gpus->count, sizeof *list);
    if (!list)
        return -ENOMEM;
    struct event event = daemon_event(daemon, EVENT_GPUS, 0);
    event.gpus.list = list;
    for (size_t i = 0; i < daemon->gpus->count; i++)
        if (gpu_info_is_listed(&daemon->gpus->gpu[i], daemon->config.gpus))
            list[event.gpus.n++] = identity_of(&daemon->gpus->gpu[i]);
    int r = daemon_feed(daemon, &event, NULL);
    free(list);
    for (size_t i = 0; i < daemon->gpus->count; i++) {
        bool managed = gpu_info_is_listed(&daemon->gpus->gpu[i], daemon->config.gpus);
        daemon->gpu_states[i].view = managed ? view_of(daemon, daemon->gpus->gpu[i].uuid) : -1;
    }
    return r;
}

static int tell_core_of_none(struct daemon *daemon)
{
    struct event event = daemon_event(daemon, EVENT_GPUS, 0);
    event.gpus.list = NULL;
    event.gpus.n = 0;
    return daemon_feed(daemon, &event, NULL);
}

static int set_up_activity(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    int64_t period_us = config->sample_period_us;
    if (period_us < config->gpm_interval_us)
        period_us = config->gpm_interval_us;
    gpu_set_gpm_interval(daemon->gpus, config->gpm_interval_us);
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
        log_warning("GPU %s: %s%s", info->index, text, state->sample.trouble.is_serious ? "; it takes no task" : "");
    snprintf(state->trouble_said, sizeof state->trouble_said, "%s", text);
}

static void feed_gpu(struct daemon *daemon, size_t i)
{
    struct gpu_state *state = &daemon->gpu_states[i];
    const struct gpu_sample *seen = &state->sample;
    struct task_memory tasks[256];
    if (state->view < 0 || seen->health == GPU_HEALTH_SILENT)
        return;
    struct event event = daemon_event(daemon, EVENT_SAMPLE, 0);
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
    daemon_feed(daemon, &event, NULL);
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
}

static void on_looked(uv_work_t *work, int status)
{
    struct daemon *daemon = work->data;
    daemon->sampling = false;
    if (daemon->stopping)
        return;
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
    if (daemon->sample_again)
        sampler_look_now(daemon);
}

void sampler_look_now(struct daemon *daemon)
{
    if (!daemon->gpus || daemon->stopping)
        return;
    daemon->sample_again = daemon->sampling;
    if (daemon->sampling)
        return;
    daemon->sampling = true;
    daemon->sample_work.data = daemon;
    uv_queue_work(&daemon->loop, &daemon->sample_work, look, on_looked);
}

/* A look that takes longer than a period is left to end; the core sees by its age that nothing new came. */
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
    for (size_t i = 0; daemon->gpus && i < daemon->gpus->count; i++) {
        gpu_sample_fini(&daemon->gpu_states[i].sample);
        gpu_sample_fini(&daemon->gpu_states[i].incoming);
        free(daemon->gpu_states[i].foreign);
        free(daemon->gpu_states[i].shares);
        series_close(daemon->gpu_states[i].series);
    }
    free(daemon->gpu_states);
    gpu_set_close(daemon->gpus);
}
