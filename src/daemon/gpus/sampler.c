/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls the GPUs. A poll has these steps:
 *
 *     1. In a thread: gpu_set_sample fills each GPU's `incoming`. A close poll also lists the GPUs.
 *     2. In the loop: `incoming` becomes `sample`. Processes are attributed to tasks, and the core
 *        is fed. When that of all GPUs is done, activity and energy are divided among them.
 *     3. A list of GPUs that differs replaces the old one, and is polled at once.
 *     4. The hook `polled` is called.
 *
 * The period's timer begins no poll while one is under way. A call about one GPU that does not
 * return costs that GPU only: its thread is abandoned (poll_thread.h), the poll ends without it,
 * and later polls leave that GPU and its instances out until the call has returned. The core sees
 * by the age of its last sample that nothing new came.
 */
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_state.h"
#include "service/aligned_timer.h"

#define HEALTH_PAUSE_US (10 * 60 * SECOND_US) /* between two reports of a failure; chosen */

/* ---- what follows from a poll ---- */

/* Logs each change once: the fault of a GPU, and its end. */
static void watch_trouble(struct gpu_state *state, const struct gpu_info *info)
{
    const char *text = state->sample.trouble.text;
    if (state->sample.health != GPU_HEALTH_OK || strcmp(text, state->trouble_logged) == 0)
        return;
    if (!*text)
        log_info("GPU %s: nothing is wrong with it any more", info->index);
    else
        log_warning("GPU %s: %s%s", info->index, text,
            state->sample.trouble.is_serious ? "; it takes no task" : "");
    snprintf(state->trouble_logged, sizeof state->trouble_logged, "%s", text);
}

/* Logs each change once, also that the library of DCGM does not work. */
static void watch_dcgm(struct gpus *gpus)
{
    const char *source = gpu_set_dcgm_source(gpus->set);
    if (!*source || strcmp(source, gpus->dcgm_logged) == 0)
        return;
    log_info("SM activity of GPUs without GPM: by %s", source);
    snprintf(gpus->dcgm_logged, sizeof gpus->dcgm_logged, "%s", source);
}

static bool is_news(const struct gpu_state *state)
{
    return state->view >= 0 && state->sample.health != GPU_HEALTH_SILENT;
}

/* A GPU whose clocks are throttled now and then is not reported each time. */
static void watch_health(struct gpus *gpus, struct gpu_state *state, const struct gpu_info *info)
{
    const struct gpu_sample *seen = &state->sample;
    bool is_lost = seen->health == GPU_HEALTH_LOST;
    const char *health = is_lost                    ? "lost"
                         : seen->trouble.is_serious ? "faulty"
                                                    : "ok",
               *before = state->health_reported ? state->health_reported : "ok";
    bool is_bad = strcmp(health, "ok") != 0;
    if (!is_news(state) || strcmp(health, before) == 0)
        return;
    if (is_bad && state->health_reported_us &&
        seen->at_us - state->health_reported_us < HEALTH_PAUSE_US)
        return;
    state->health_reported = health;
    if (is_bad)
        state->health_reported_us = seen->at_us;
    gpus->parts.hooks.health_changed(gpus->parts.hooks.context, state->view, info, health,
        is_lost ? seen->health_reason : seen->trouble.text);
}

static struct reading sum_readings(struct reading a, struct reading b)
{
    return (struct reading){a.value + b.value, a.valid && b.valid};
}

static bool is_to_be_fed(const struct gpu_state *state)
{
    return state->is_fresh && is_news(state);
}

/* Is a later GPU of this poll to be fed, too? */
static bool more_follow(const struct gpus *gpus, size_t i)
{
    for (size_t k = i + 1; k < gpus->set->count; k++)
        if (is_to_be_fed(&gpus->states[k]))
            return true;
    return false;
}

/* Was no activity measured since the last sample? With sample-period as short as gpm-interval every
 * other sample has that of the one before. */
static bool repeats_activity(struct gpu_state *state)
{
    int64_t before_us = state->activity_fed_us;
    state->activity_fed_us = state->sample.smact.valid ? state->sample.activity.at_us : 0;
    return before_us && state->activity_fed_us == before_us;
}

static void feed_gpu(struct gpus *gpus, size_t i)
{
    struct gpu_state *state = &gpus->states[i];
    const struct gpu_sample *seen = &state->sample;
    struct task_memory tasks[RESIDENTS_SAMPLED_MAX];
    if (!is_to_be_fed(state))
        return;
    struct event event = driver_event(gpus->parts.driver, EVENT_SAMPLE, 0);
    event.sample = (struct core_sample){
        .gpu = state->view,
        .lost = seen->health == GPU_HEALTH_LOST || seen->health == GPU_HEALTH_GONE,
        .faulty = seen->trouble.is_serious,
        .more_follow = more_follow(gpus, i),
        .mem_used_bytes = seen->mem_used_bytes,
        .smact = seen->smact,
        .smact_repeats = repeats_activity(state),
        .utilisation = seen->utilisation,
        .power_w = seen->power_w,
        .pcie_bytes_per_s = sum_readings(seen->pcie_tx_bytes_per_s, seen->pcie_rx_bytes_per_s),
        .tasks = tasks,
    };
    gpu_attribute(gpus, state, &event.sample);
    driver_feed(gpus->parts.driver, &event, NULL);
}

/* What its tasks use on all their GPUs together, as the core has it from the samples, and on GPUs
 * that they were not given, if two samples show it: one may be of before a copy on a neighbour came
 * back. */
static void update_task_memory(struct gpus *gpus)
{
    const struct cluster_view *view = core_view(gpus->parts.core);
    for (int i = 0; i < view->n_gpus; i++)
        for (int k = 0; k < view->gpus[i].n_residents; k++) {
            uint64_t task = view->gpus[i].residents[k].task;
            struct job *job = jobs_find(gpus->parts.jobs, task);
            if (job)
                job->mem_used_bytes = gpus_misplaced_bytes(gpus, task, true);
        }
    for (int i = 0; i < view->n_gpus; i++)
        for (int k = 0; k < view->gpus[i].n_residents; k++) {
            const struct resident *resident = &view->gpus[i].residents[k];
            struct job *job = jobs_find(gpus->parts.jobs, resident->task);
            if (!job || !resident->mem_used_bytes.valid)
                continue;
            double sum = reading_or(job->mem_used_bytes, 0) + resident->mem_used_bytes.value;
            job->mem_used_bytes = reading_of(sum);
            if (sum > reading_or(job->mem_peak_bytes, 0)) {
                job->mem_peak_bytes = reading_of(sum);
                job->peak_gpu = i;
                job->peak_whole = view->gpus[i].claims[CLAIM_EXCLUSIVE] == job->id;
            }
        }
}

/* Energy and activity count for as long as there were tasks that had not ended. The energy is the
 * difference of a counter: that of a gap without samples counts too, when the GPU answers again. */
static void account_gpus(struct gpus *gpus)
{
    bool lived = jobs_take_lived(gpus->parts.jobs);
    for (size_t i = 0; i < gpus->set->count; i++) {
        struct gpu_state *state = &gpus->states[i];
        const struct gpu_sample *seen = &state->sample;
        state->has_lived |= lived;
        if (state->view < 0 || !state->is_fresh)
            continue;
        if (state->has_lived && seen->energy_j.valid && state->energy_j.valid)
            gpus->energy_j += seen->energy_j.value - state->energy_j.value;
        if (lived && seen->smact.valid) {
            gpus->smact_sum += seen->smact.value;
            gpus->smact_n++;
        }
        if (seen->energy_j.valid) {
            state->energy_j = seen->energy_j;
            state->has_lived = false;
        }
    }
}

/* ---- a poll, in its thread ---- */

/* Steps of a poll after those of the GPUs. */
enum { STEP_LIST, STEP_RENEW };

static size_t later_step(const struct gpus *gpus, size_t step)
{
    return gpus->set->count + step;
}

/* A new list makes a new set, which moves what a stuck call still uses. */
static bool has_skipped(const struct gpus *gpus)
{
    bool any = gpus->stuck;
    for (size_t i = 0; i < gpus->set->count; i++)
        any |= gpus->states[i].is_skipped;
    return any;
}

static void poll_all(struct poll_thread *thread, void *context)
{
    struct gpus *gpus = context;
    if (!has_skipped(gpus)) /* a thread that does not return may still be searching */
        left_memory_search(gpus);
    for (size_t i = 0; i < gpus->set->count; i++) {
        if (!poll_thread_begin(thread, i))
            return;
        if (!gpus->states[i].is_skipped)
            gpu_set_sample(gpus->set, i, &gpus->states[i].incoming);
    }
    if (has_skipped(gpus) || !poll_thread_begin(thread, later_step(gpus, STEP_LIST)))
        return;
    bool is_outdated = gpu_set_is_outdated(gpus->set, gpus->is_close_poll);
    if (is_outdated && poll_thread_begin(thread, later_step(gpus, STEP_RENEW)) &&
        gpu_set_renew(gpus->set, true, &gpus->next) != GPU_SET_CHANGED)
        gpus->next = NULL;
}

/* ---- what it has brought ---- */

/* `end`: the GPUs before it were polled. The thread is still set: another poll would sample what is
 * closed here. */
static void take_in(struct gpus *gpus, size_t end)
{
    for (size_t i = 0; i < gpus->set->count; i++) {
        struct gpu_state *state = &gpus->states[i];
        struct gpu_sample last = state->sample;
        state->is_fresh = i < end && !state->is_skipped;
        if (!state->is_fresh)
            continue;
        state->sample = state->incoming;
        state->incoming = last;
    }
    account_gpus(gpus);
    watch_dcgm(gpus);
    task_roots_collect(gpus);
    if (end == gpus->set->count)
        left_memory_take(gpus);
    for (size_t i = 0; i < gpus->set->count; i++) {
        if (!gpus->states[i].is_fresh)
            continue;
        watch_trouble(&gpus->states[i], &gpus->set->gpu[i]);
        watch_health(gpus, &gpus->states[i], &gpus->set->gpu[i]);
        feed_gpu(gpus, i);
    }
    for (size_t i = 0; i < gpus->set->count; i++)
        if (gpus->states[i].is_fresh)
            usage_weigh(gpus, i);
    for (size_t i = 0; i < gpus->set->count; i++) {
        if (!gpus->states[i].is_fresh)
            continue;
        usage_measure(gpus, i);
        if (is_news(&gpus->states[i]))
            usage_divide(gpus, &gpus->states[i]);
        idle_holders_watch(gpus, &gpus->states[i]);
    }
    listed_processes_forget(gpus);
    update_task_memory(gpus);
    usage_save_sometimes(gpus);
    if (gpus->next) {
        gpu_list_replace(gpus, gpus->next);
        gpus->next = NULL;
        gpus->poll_again = true;
    }
}

static void end_poll(struct gpus *gpus, size_t end)
{
    take_in(gpus, end);
    gpus->thread = NULL;
    gpus->parts.hooks.polled(gpus->parts.hooks.context, gpus->polls_begun);
    if (gpus->poll_again)
        gpus_poll(gpus);
}

void sampler_on_done(uv_async_t *polled)
{
    struct gpus *gpus = polled->data;
    struct poll_thread *thread = gpus->thread;
    if (gpus->is_closed)
        return;
    if (gpus->opener && poll_thread_is_done(gpus->opener) && gpus_finish_opening(gpus))
        gpus_start(gpus);
    if (thread && poll_thread_is_done(thread)) {
        end_poll(gpus, gpus->set->count);
        poll_thread_free(thread);
    }
}

/* ---- calls that do not return ---- */

#define HANG_US (2 * SECOND_US) /* chosen: the slowest call seen on H200s took a few milliseconds */

/* Says for how long: it is the GPU's health while it has no recent reading. */
static void describe_hang(struct gpu_state *state, int64_t age_us)
{
    char age[32];
    snprintf(state->sample.health_reason, sizeof state->sample.health_reason,
        "a call of NVML about it has not returned for %s", format_elapsed(age_us, age, sizeof age));
}

/* The poll ends without this GPU, and the next ones leave it out. */
static void abandon_poll(struct gpus *gpus, size_t step, int64_t age_us)
{
    struct poll_thread *thread = gpus->thread;
    if (!poll_thread_abandon(thread))
        return;
    if (step < gpus->set->count) {
        gpus->states[step].stuck = thread;
        describe_hang(&gpus->states[step], age_us);
        log_warning(
            "GPU %s: a call of NVML has not returned for %.1f s: no task starts on it until "
            "it does; the other GPUs go on",
            gpus->set->gpu[step].index, (double)age_us / (double)SECOND_US);
    } else {
        gpus->stuck = thread;
        log_warning(
            "NVML's list of the GPUs has not come for %.1f s", (double)age_us / (double)SECOND_US);
    }
    gpus->poll_again = true;
    end_poll(gpus, step);
}

static void watch_poll(struct gpus *gpus)
{
    size_t step;
    int64_t age_us = poll_thread_step_us(gpus->thread, &step);
    if (age_us < HANG_US)
        return;
    if (step != later_step(gpus, STEP_RENEW))
        abandon_poll(gpus, step, age_us);
    else if (!gpus->renew_logged)
        log_warning(
            "NVML has not listed the changed MIG instances for %.1f s: all GPUs wait for it",
            (double)age_us / (double)SECOND_US);
    gpus->renew_logged = true;
}

/* Returns whether the thread has ended, and has been released. */
static bool release_ended(struct poll_thread **thread)
{
    if (!*thread || !poll_thread_is_done(*thread))
        return false;
    poll_thread_free(*thread);
    *thread = NULL;
    return true;
}

static void watch_stuck(struct gpus *gpus)
{
    release_ended(&gpus->stuck);
    for (size_t i = 0; i < gpus->set->count; i++) {
        struct gpu_state *state = &gpus->states[i];
        size_t step;
        if (release_ended(&state->stuck)) {
            *state->sample.health_reason = '\0';
            log_info("GPU %s: NVML answers again", gpus->set->gpu[i].index);
        } else if (state->stuck) {
            describe_hang(state, poll_thread_step_us(state->stuck, &step));
        }
    }
}

void sampler_close(struct gpus *gpus)
{
    struct poll_thread **threads[] = {&gpus->thread, &gpus->opener, &gpus->stuck};
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        if (*threads[i] && !poll_thread_wait(*threads[i], HANG_US / MS_US) &&
            poll_thread_abandon(*threads[i]))
            gpus->is_left = true;
        else
            release_ended(threads[i]);
    }
    for (size_t i = 0; gpus->set && i < gpus->set->count; i++)
        if (gpus->states[i].stuck && !release_ended(&gpus->states[i].stuck))
            gpus->is_left = true;
}

/* ---- polls ---- */

/* While no poll is under way. */
static void forget_cleared_errors(struct gpus *gpus)
{
    for (size_t i = 0; i < gpus->set->count; i++) {
        if (gpus->states[i].errors_cleared)
            gpu_set_forget_xids(gpus->set, i);
        gpus->states[i].errors_cleared = false;
    }
}

/* Of a card whose call hangs the instances are not queried either. */
static void mark_skipped(struct gpus *gpus)
{
    for (size_t i = 0; i < gpus->set->count; i++) {
        const struct gpu_info *info = &gpus->set->gpu[i];
        size_t card = info->is_mig ? info->parent : i;
        bool is_skipped = gpus->states[card].stuck;
        for (size_t k = 0; k < gpus->set->count; k++)
            is_skipped |= gpus->states[k].stuck && gpus->set->gpu[k].is_mig &&
                          gpus->set->gpu[k].parent == card;
        gpus->states[i].is_skipped = is_skipped;
    }
}

/*
 * The energy counter is queried rarely where that is expensive, and in between power times time is
 * added. Both ends of the time with tasks are queried, so that the difference is exact, also on
 * emulated GPUs, whose time runs faster than the clock.
 */
static void query_ends(struct gpus *gpus)
{
    bool has_jobs = jobs_count(gpus->parts.jobs) > 0;
    if (has_jobs != gpus->had_jobs)
        gpu_set_query_all_next(gpus->set);
    gpus->had_jobs = has_jobs;
}

/* Without address space for a thread's stack, or without a process left in the service's cgroup,
 * this sample is left out: readings get older, and the next period tries again. */
static void start_poll(struct gpus *gpus)
{
    gpus->is_close_poll = gpus->polls_begun + 1 <= gpus->close_polls;
    gpus->thread = poll_thread_start(poll_all, gpus, &gpus->polled);
    if (gpus->thread)
        gpus->polls_begun++;
    else if (!gpus->lacks_thread)
        log_warning("no thread can be started to sample the GPUs: their readings get older");
    gpus->lacks_thread = !gpus->thread;
}

void gpus_poll(struct gpus *gpus)
{
    if (!gpus->set || gpus->is_closed)
        return;
    gpus->poll_again = gpus->thread;
    if (gpus->thread)
        return;
    watch_stuck(gpus);
    mark_skipped(gpus);
    query_ends(gpus);
    forget_cleared_errors(gpus);
    gpus_update_dcgm_period(gpus);
    if (!has_skipped(gpus))
        left_memory_prepare(gpus, clock_monotonic_us());
    start_poll(gpus);
}

int64_t gpus_poll_closely(struct gpus *gpus)
{
    if (!gpus->set || gpus->is_closed)
        return 0;
    gpus->close_polls = gpus->polls_begun + 1; /* one under way began before this was wanted */
    gpus_poll(gpus);
    return gpus->close_polls;
}

static void on_period(uv_timer_t *timer);

static void await_period(struct gpus *gpus)
{
    uint64_t period_ms = (uint64_t)(gpus->parts.config->sample_period_us / MS_US);
    aligned_timer_start(&gpus->timer, on_period, period_ms);
}

static void on_period(uv_timer_t *timer)
{
    struct gpus *gpus = timer->data;
    await_period(gpus);
    if (gpus->thread)
        watch_poll(gpus);
    else
        gpus_poll(gpus);
}

void gpus_start(struct gpus *gpus)
{
    if (!gpus->set)
        return;
    gpus_poll(gpus);
    await_period(gpus);
}
