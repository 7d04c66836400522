/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that hold a GPU while no process uses it: a warning in the log, once each time, and
 * `unused_s` in the API. When all GPUs of a task have been unused for long, an event goes to the
 * event log, from which its owner gets a message (docs/messages.md). Unknown is not idle: a sample
 * without a reading of activity, or one that comes too late after the one before, begins the time
 * anew.
 */
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

static struct reading idle_us(
    const struct gpus *gpus, const struct gpu_state *state, const struct resident *resident)
{
    const struct gpu_sample *seen = &state->sample;
    if (!seen->smact.valid && !seen->utilisation.valid)
        return READING_NONE;
    if (!state->is_idle)
        return reading_of(0);
    int64_t held_us = driver_monotonic_us(gpus->parts.driver, resident->since_us);
    int64_t since_us = held_us > state->idle_since_us ? held_us : state->idle_since_us;
    return reading_of((double)(seen->at_us > since_us ? seen->at_us - since_us : 0));
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

static bool is_long_idle(const struct gpus *gpus, int view, uint64_t task)
{
    const struct resident *resident = gpu_view_resident(
        &core_view(gpus->parts.core)->gpus[view], task);
    for (size_t i = 0; i < gpus_count(gpus) && resident; i++)
        if (gpus->states[i].view == view)
            return is_long(gpus, idle_us(gpus, &gpus->states[i], resident));
    return false;
}

/* The GPU is the last of the task's to be unused for long. */
static void report_idle(const struct gpus *gpus, uint64_t id, double idle)
{
    const struct task *task = core_task(gpus->parts.core, id);
    struct event event = driver_event(gpus->parts.driver, EVENT_IDLE, id);
    event.idle_us = (int64_t)idle;
    bool all = true;
    for (int i = 0; i < task->n_gpus && all; i++)
        all = is_long_idle(gpus, task->gpus[i], id);
    if (all)
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
        if (state->idle_logged)
            continue;
        log_warning("task %llu has GPU %s and has not used it for %s",
            (unsigned long long)gpu->residents[i].task, gpu->id.label,
            format_elapsed((int64_t)idle.value, text, sizeof text));
        report_idle(gpus, gpu->residents[i].task, idle.value);
    }
    state->idle_logged = any;
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
    if (state->view >= 0)
        log_holders(gpus, state);
}
