/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that hold a GPU without using it: no process uses the GPU, or only others do and the task's
 * processes have not called CUDA (the preloaded library detects that, docs/preload.md). The log
 * gets a warning, once each time, and the API `unused_s`. When a task has not used any of its GPUs
 * for `unused-after`, an event goes to the event log, from which its owner gets a message
 * (docs/messages.md); after `suspend-unused-after` another one, by which the core suspends it. The
 * next sample says so as well: then the task gives way to one that lacks memory.
 * Unknown is not idle: a sample without a reading of activity, or one that comes too late after the
 * one before, restarts the time.
 */
#include <math.h>

#include "base/array.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/gpus/gpus_state.h"

#define LATE_PERIODS 3 /* chosen: a sample later than this may have missed activity */

/* Chosen: noise of the counters is below. A kernel of one thread does not show in SMACT, but in
 * GRACT and utilisation. */
#define ACTIVE_LEAST 0.005

static bool is_idle(const struct gpu_sample *seen)
{
    const struct reading *readings[] = {&seen->smact, &seen->gract, &seen->utilisation};
    bool known = false;
    for (size_t i = 0; i < ARRAY_SIZE(readings); i++) {
        if (readings[i]->valid && readings[i]->value > ACTIVE_LEAST)
            return false;
        known |= readings[i]->valid;
    }
    return known;
}

/* For how long it has been known that nothing uses the GPU; 0: something does. */
static struct reading gpu_idle_us(const struct gpu_state *state)
{
    const struct gpu_sample *seen = &state->sample;
    if (!seen->smact.valid && !seen->utilisation.valid)
        return READING_NONE;
    return reading_of(state->is_idle ? (double)(seen->at_us - state->idle_since_us) : 0);
}

/* Time since the task called CUDA; not valid: not known, or it has no process there. A task whose
 * kernels the driver reports is active: it waits for a long kernel. */
static struct reading calls_idle_us(const struct gpu_state *state, uint64_t task)
{
    for (size_t i = 0; i < state->n_shares; i++) {
        const struct gpu_holder *holder = &state->shares[i].holder;
        if (state->shares[i].task == task && holder->processes > 0)
            return reading_or(holder->sm_utilisation, 0) > 0 ? reading_of(0)
                                                             : state->shares[i].calls_idle_us;
    }
    return READING_NONE;
}

static bool is_used_by_others(const struct gpu_state *state, uint64_t task)
{
    for (size_t i = 0; i < state->n_shares; i++)
        if (state->shares[i].task != task && state->shares[i].holder.processes > 0)
            return true;
    return false;
}

/* Do others use the GPU? Only then its activity may be theirs. That of a compute instance may be of
 * the others in its GPU instance. */
static bool has_others(const struct gpus *gpus, const struct gpu_state *state, uint64_t task)
{
    const struct gpu_info *gpu = &gpus->set->gpu[state - gpus->states];
    for (size_t i = 0; i < gpus->set->count; i++) {
        const struct gpu_state *other = &gpus->states[i];
        bool is_measured_together = other == state ||
                                    gpu_info_shares_memory(&gpus->set->gpu[i], gpu);
        if (is_measured_together && is_used_by_others(other, task))
            return true;
    }
    return false;
}

static struct reading idle_us(
    const struct gpus *gpus, const struct gpu_state *state, const struct resident *resident)
{
    struct reading idle = gpu_idle_us(state), calls = calls_idle_us(state, resident->task);
    int64_t held_us = state->sample.at_us -
                      driver_monotonic_us(gpus->parts.driver, resident->since_us);
    bool counts = calls.valid && has_others(gpus, state, resident->task);
    if (counts && (!idle.valid || calls.value > idle.value))
        idle = calls;
    if (idle.valid && idle.value > (double)held_us)
        idle.value = held_us > 0 ? (double)held_us : 0;
    return idle;
}

static bool is_long(const struct gpus *gpus, struct reading idle)
{
    return idle.valid && idle.value >= (double)gpus->parts.config->unused_after_us;
}

struct reading gpus_idle_us(
    const struct gpus *gpus, size_t i, const struct resident *resident, bool *ret_is_long)
{
    struct reading idle = idle_us(gpus, &gpus->states[i], resident);
    *ret_is_long = is_long(gpus, idle);
    return idle;
}

/* Time for which the task has used none of its GPUs; 0: it uses one, or that is not known. */
static double task_idle_us(const struct gpus *gpus, const struct task *task)
{
    double least = INFINITY;
    for (size_t i = 0; i < gpus_count(gpus); i++) {
        const struct gpu_state *state = &gpus->states[i];
        const struct gpu_view *gpu = state->view >= 0
                                         ? &core_view(gpus->parts.core)->gpus[state->view]
                                         : NULL;
        const struct resident *resident = gpu ? gpu_view_resident(gpu, task->id) : NULL;
        if (resident)
            least = fmin(least, reading_or(idle_us(gpus, state, resident), 0));
    }
    /* A process on a GPU that it was not given may be computing. */
    bool is_elsewhere = gpus_misplaced_bytes(gpus, task->id, false).valid;
    return isfinite(least) && !is_elsewhere ? least : 0;
}

enum { DOUBLED_MAX = 16 };

/* How long a task must have been idle for its next report; negative: it has had all. */
static int64_t next_report_us(const struct config *config, const struct job *job)
{
    int64_t suspend_us = config->core.suspend_unused_us;
    if (job->idle_reports == 0)
        return config->unused_after_us;
    if (suspend_us <= 0 || job->idle_reports > DOUBLED_MAX)
        return -1;
    return suspend_us << (job->idle_reports - 1);
}

/* Once when the task has been idle for long; and when it is to be suspended for that, which is
 * tried again after twice the time, and so on, if it could not be. */
static void report_idle(const struct gpus *gpus, uint64_t id)
{
    struct job *job = jobs_find(gpus->parts.jobs, id);
    double idle = task_idle_us(gpus, core_task(gpus->parts.core, id));
    struct event event = driver_event(gpus->parts.driver, EVENT_IDLE, id);
    event.idle_us = (int64_t)idle;
    if (!job)
        return;
    job->is_inactive = is_long(gpus, reading_of(idle));
    if (!job->is_inactive)
        job->idle_reports = 0;
    int64_t due_us = next_report_us(gpus->parts.config, job);
    if (due_us < 0 || event.idle_us < due_us)
        return;
    job->idle_reports++;
    driver_feed(gpus->parts.driver, &event, NULL);
}

static void log_holders(const struct gpus *gpus, struct gpu_state *state)
{
    const struct gpu_view *gpu = &core_view(gpus->parts.core)->gpus[state->view];
    bool any = false;
    for (int i = 0; i < gpu->n_residents; i++) {
        struct reading idle = idle_us(gpus, state, &gpu->residents[i]);
        char text[32];
        if (!is_long(gpus, idle))
            continue;
        any = true;
        if (!state->idle_logged)
            log_warning("task %llu has GPU %s and has not used it for %s",
                (unsigned long long)gpu->residents[i].task, gpu->id.label,
                format_elapsed((int64_t)idle.value, text, sizeof text));
    }
    state->idle_logged = any;
}

/* A report may suspend a task, which changes the list of residents: at the end, from the last. */
static void report_holders(const struct gpus *gpus, const struct gpu_state *state)
{
    const struct gpu_view *gpu = &core_view(gpus->parts.core)->gpus[state->view];
    for (int i = gpu->n_residents - 1; i >= 0 && i < gpu->n_residents; i--)
        report_idle(gpus, gpu->residents[i].task);
}

void idle_holders_watch(struct gpus *gpus, struct gpu_state *state)
{
    const struct gpu_sample *seen = &state->sample;
    int64_t late_us = LATE_PERIODS * gpus->parts.config->sample_period_us;
    bool is_late = seen->at_us - state->sampled_us > late_us;
    bool was_idle = state->is_idle && !is_late;
    state->sampled_us = seen->at_us;
    state->is_idle = is_idle(seen);
    if (state->is_idle && !was_idle)
        state->idle_since_us = seen->at_us;
    if (state->view < 0)
        return;
    log_holders(gpus, state);
    report_holders(gpus, state);
}
