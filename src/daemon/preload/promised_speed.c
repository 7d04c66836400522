/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many times as long as alone a task takes now, for its promise (core/state/promise.h): the
 * steps a second of windows in which it was alone on its GPUs, over those of the last window.
 *
 *     alone          alone          beside b       beside b
 *     8.1 steps/s    8.3            5.6            5.7
 *     └── speed alone: 8.2 ──┘      1.46           1.44      times as long
 *
 * A window lasts five seconds, and at least four steps. It begins anew when a task comes to a GPU
 * of it or stops computing there, so each is of one mix. Before the first window alone the speed
 * alone is that of earlier runs of the same command (command_history.h); without any, the slowdown
 * is unknown.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "daemon/preload/preload_state.h"

/* Chosen. */
#define WINDOW_US     (5 * SECOND_US)
#define WINDOW_STEPS  4
#define WINDOW_MAX_US (600 * SECOND_US) /* then it makes no steps: an evaluation, perhaps */
#define OTHER_STEPS   1.1               /* faster than alone: an earlier run made other steps */
#define WEIGHT_LEAST  0.125             /* of a new window alone in the mean: speeds drift */

/* Does another task compute on the GPU, or an external process, as far as is known? */
static bool is_shared(const struct gpu_view *gpu)
{
    int n = 0;
    for (int i = 0; i < gpu->n_residents; i++)
        n += !gpu->residents[i].is_stopped;
    return n > 1 || reading_assume(gpu->external_processes, 1) > 0;
}

static int64_t later_time(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Since when the same tasks have computed on the GPU. */
static int64_t mix_since_us(const struct core *core, const struct gpu_view *gpu)
{
    int64_t since_us = gpu->mix_since_us;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct task_yield *yield = &core_task(core, gpu->residents[i].task)->run->yield;
        since_us = later_time(since_us, later_time(yield->since_us, yield->resumed_us));
    }
    return since_us;
}

/* `ret_since_us`: since when the same tasks have computed there. */
static bool is_alone(const struct core *core, const struct task *task, int64_t *ret_since_us)
{
    bool is_alone = true;
    *ret_since_us = task->started_us;
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core_view(core)->gpus[task->gpus[i]];
        is_alone &= !is_shared(gpu);
        *ret_since_us = later_time(*ret_since_us, mix_since_us(core, gpu));
    }
    return is_alone;
}

static void begin_window(struct job_steps *steps, bool is_alone, int64_t now_us)
{
    struct speed_alone *alone = steps->alone;
    alone->steps = steps->total;
    alone->timed_s = steps->timed_s;
    alone->begun_us = now_us;
    alone->begun_units = alone->units;
    alone->is_alone = is_alone;
}

static void note_alone(struct speed_alone *alone, double per_s, double mode_speed)
{
    double weight = 1.0 / (alone->windows + 1), before = reading_or(alone->per_s, 0);
    if (weight < WEIGHT_LEAST)
        weight = WEIGHT_LEAST;
    alone->per_s = reading_of(before + weight * (per_s - before));
    alone->mode_speed = mode_speed;
    alone->windows++;
}

static void report_slowdown(
    struct preload_manager *manager, const struct task *task, struct reading slowdown)
{
    struct event event = driver_event(manager->parts.driver, EVENT_SPEED, task->id);
    event.slowdown = slowdown;
    driver_feed(manager->parts.driver, &event, NULL);
}

/* A window has ended. Returns the slowdown in it. */
static struct reading end_window(
    const struct core *core, const struct task *task, const struct job_steps *steps)
{
    struct speed_alone *alone = steps->alone;
    double n = steps->total - alone->steps, s = steps->timed_s - alone->timed_s;
    if (n < WINDOW_STEPS || s <= 0)
        return READING_NONE;
    if (alone->windows == 0 && alone->per_s.valid && n / s > OTHER_STEPS * alone->per_s.value)
        alone->per_s = READING_NONE;
    if (alone->is_alone)
        note_alone(alone, n / s, reading_or(core_speed_now(core, task).speed, 1));
    return alone->per_s.valid ? reading_of(alone->per_s.value * s / n) : READING_NONE;
}

static void note_task(struct preload_manager *manager, const struct task *task, struct job *job)
{
    struct job_steps *steps = &job->steps;
    struct speed_alone *alone = steps->alone;
    int64_t since_us, now_us = driver_now_us(manager->parts.driver);
    bool now_alone = is_alone(manager->parts.core, task, &since_us);
    if (alone->begun_units != alone->units) /* of other steps nothing is known */
        *alone = (struct speed_alone){.per_s = READING_NONE};
    if (!alone->begun_us || alone->begun_us < since_us || now_alone != alone->is_alone) {
        begin_window(steps, now_alone, now_us);
        return;
    }
    bool has_steps = steps->total - alone->steps >= WINDOW_STEPS;
    int64_t lasts_us = now_us - alone->begun_us;
    if (lasts_us < WINDOW_US || (!has_steps && lasts_us < WINDOW_MAX_US))
        return;
    struct reading slowdown = end_window(manager->parts.core, task, steps);
    begin_window(steps, now_alone, now_us);
    if (task->request.slowdown_max.valid)
        report_slowdown(manager, task, slowdown);
}

static void note_resident(struct preload_manager *manager, uint64_t id)
{
    const struct task *task = core_task(manager->parts.core, id);
    struct job *job = jobs_find(manager->parts.jobs, id);
    if (!task || !job || job->steps.total <= 0)
        return;
    if (!job->steps.alone)
        job->steps.alone = calloc(1, sizeof *job->steps.alone);
    if (!job->steps.alone)
        return;
    if (task->state == TASK_RUNNING)
        note_task(manager, task, job);
    else
        job->steps.alone->begun_us = 0;
}

/* A report may change which tasks are on a GPU: they are listed first. */
void promised_speed_note_all(struct preload_manager *manager)
{
    const struct cluster_view *view = core_view(manager->parts.core);
    uint64_t *ids = NULL;
    size_t n = 0, capacity = 0;
    for (int i = 0; i < view->n_gpus; i++)
        for (int k = 0; k < view->gpus[i].n_residents; k++) {
            const struct resident *resident = &view->gpus[i].residents[k];
            if (resident->places[0] == i && ARRAY_APPEND(ids, n, capacity, resident->task) < 0)
                break; /* without memory it is not measured this time */
        }
    for (size_t i = 0; i < n; i++)
        note_resident(manager, ids[i]);
    free(ids);
}
