/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many times as long as alone each task takes now (speed_window.h). The core gets it for a
 * promise (core/state/promise.h), and of tasks that share their GPUs, to learn from it
 * (core/state/delays.h).
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/clamp.h"
#include "core/probe.h"
#include "daemon/preload/preload_state.h"
#include "daemon/preload/speed_window.h"

/* Does another task compute on the GPU, or an external process, as far as is known? */
static bool is_shared(const struct gpu_view *gpu)
{
    int n = 0;
    for (int i = 0; i < gpu->n_residents; i++)
        n += !gpu->residents[i].is_stopped;
    return n > 1 || reading_assume(gpu->external_processes, 1) > 0;
}

/* Since when the same tasks have computed on the GPU. */
static int64_t mix_since_us(const struct core *core, const struct gpu_view *gpu)
{
    int64_t since_us = gpu->mix_since_us;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct task_yield *yield = &core_task(core, gpu->residents[i].task)->run->yield;
        since_us = max_int64(since_us, max_int64(yield->since_us, yield->resumed_us));
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
        *ret_since_us = max_int64(*ret_since_us, mix_since_us(core, gpu));
    }
    return is_alone;
}

static void report_slowdown(
    struct preload_manager *manager, const struct task *task, const struct speed_report *report)
{
    struct event event = driver_event(manager->parts.driver, EVENT_SPEED, task->id);
    event.slowdown = report->slowdown;
    event.step_us = report->step_us;
    driver_feed(manager->parts.driver, &event, NULL);
}

static bool is_probed(const struct preload_manager *manager, const struct task *task)
{
    return driver_now_us(manager->parts.driver) < task->run->promise.probe_until_us;
}

static void note_task(struct preload_manager *manager, const struct task *task, struct job *job)
{
    int64_t since_us, now_us = driver_now_us(manager->parts.driver);
    bool now_alone = is_alone(manager->parts.core, task, &since_us);
    bool is_probe = now_alone && is_probed(manager, task);
    struct speed_report report = {READING_NONE, READING_NONE};
    if (is_probe)
        since_us += PROBE_SETTLE_US;
    bool has_ended = speed_window_note(&job->steps, now_alone, is_probe, since_us, now_us, &report);
    bool is_of_use = task->request.slowdown_max.valid || (!now_alone && report.slowdown.valid);
    if (has_ended && is_of_use)
        report_slowdown(manager, task, &report);
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

static bool is_any_probed(const struct preload_manager *manager, const uint64_t *ids, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const struct task *task = core_task(manager->parts.core, ids[i]);
        any |= task && task->state == TASK_RUNNING && is_probed(manager, task);
    }
    return any;
}

/* A report may change which tasks are on a GPU: they are listed first. */
bool promised_speed_note_all(struct preload_manager *manager)
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
    bool any_probed = is_any_probed(manager, ids, n);
    free(ids);
    return any_probed;
}
