/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A promised task is probed only among tasks that run undisturbed: a task that is starting, or
 * stopped for another reason, would be measured with it or come back in the middle. A neighbour
 * pays at most its part `probe_share`: before it is paused for 3 s of one in a hundred, it has run
 * for 300 s.
 *
 * Never paused are services, tasks on several nodes, whose other processes would wait, and those
 * whose own promise is missed. Nothing is paused where that would not leave the task alone: beside
 * external processes, and on a compute instance whose memory others use.
 */
#include "core/ask/probe.h"

#include <math.h>

#include "core/ask/giving_way.h"
#include "core/memory_domain.h"
#include "core/probe.h"
#include "core/state/promise.h"
#include "core/state/tasks.h"

static int64_t most_us(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Steps take less time alone than now: so they are counted by then. */
static double stop_us(double step_us)
{
    return (double)(PROBE_SETTLE_US + 2 * PROBE_PERIOD_US) +
           fmax((double)PROBE_MEASURE_US, PROBE_STEPS * step_us);
}

static void note_obstacle(struct probe_answer *answer, enum probe_kind kind, uint64_t task)
{
    if (kind > answer->kind) {
        answer->kind = kind;
        answer->task = task;
    }
}

static void note_later(struct probe_answer *answer, int64_t at_us, int64_t now_us)
{
    if (at_us <= now_us)
        return;
    note_obstacle(answer, PROBE_LATER, 0);
    answer->at_us = most_us(answer->at_us, at_us);
}

static bool is_settled(const struct task *task, const struct resident *resident)
{
    return task->state == TASK_RUNNING && !task->ending && !task->run->memory_wait.bytes &&
           residence_has_settled(resident->residence);
}

static bool is_never_paused(const struct task *task)
{
    return task->request.service.is_service || task->request.nodes > 1 || task->exclusive ||
           task->run->promise.missed_since_us;
}

/* When it has run for so long that the pause is its part of that. */
static int64_t affordable_us(
    const struct core *core, const struct task *task, int64_t stop_us, int64_t now_us)
{
    double stopped_us = (double)(task->run->yield.probed_us + stop_us);
    double left_us = stopped_us / core->settings.probe_share -
                     (double)task_computed_us(task, now_us);
    return left_us > 0 ? now_us + (int64_t)ceil(left_us) : now_us;
}

static void ask_neighbour(const struct core *core, const struct resident *resident,
    struct probe_answer *answer, int64_t now_us)
{
    const struct task *task = core_find_task(core, resident->task);
    if (is_never_paused(task))
        note_obstacle(answer, PROBE_REFUSED, task->id);
    if (task->run->yield.cannot_pause)
        note_obstacle(answer, PROBE_UNFROZEN, task->id);
    if (!is_settled(task, resident) || !core_may_pause(core, task, now_us))
        note_obstacle(answer, PROBE_UNSETTLED, task->id);
    note_later(answer, affordable_us(core, task, answer->stop_us, now_us), now_us);
}

/* Returns the number of other tasks there. */
static int ask_gpu(const struct core *core, const struct task *task, int gpu,
    struct probe_answer *answer, int64_t now_us)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    if (reading_assume(view->external_processes, 1) > 0 || memory_domain_has_others(view))
        note_obstacle(answer, PROBE_EXTERNAL, 0);
    if (view->n_absent > 0 || view->health != VIEW_OK)
        note_obstacle(answer, PROBE_UNSETTLED, 0);
    for (int i = 0; i < view->n_residents; i++) {
        const struct resident *resident = &view->residents[i];
        if (resident->task != task->id)
            ask_neighbour(core, resident, answer, now_us);
        else if (!is_settled(task, resident))
            note_obstacle(answer, PROBE_UNSETTLED, task->id);
    }
    return view->n_residents - 1;
}

/* With PROBE_NONE: where no other task is there, it is measured as it is. */
static struct probe_answer ask_gpus(
    const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task_promise *promise = &task->run->promise;
    struct probe_answer answer = {
        .kind = PROBE_DUE, .stop_us = (int64_t)stop_us(promise->step_us.value)};
    int n_others = 0;
    for (int i = 0; i < task->n_gpus; i++)
        n_others += ask_gpu(core, task, task->gpus[i], &answer, now_us);
    if (promise->n_probes > 0)
        note_later(&answer, promise->probe_begun_us + PROBE_AGAIN_US, now_us);
    return n_others > 0 ? answer : (struct probe_answer){.kind = PROBE_NONE};
}

struct probe_answer core_find_probe(
    const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task_promise *promise = &task->run->promise;
    bool is_allowed = core->settings.probe_share > 0 && core->settings.can_pause;
    if (!is_allowed || !core_has_promise(task) || promise->slowdown.valid ||
        task->state != TASK_RUNNING || task->ending || task->request.nodes > 1)
        return (struct probe_answer){.kind = PROBE_NONE};
    if (now_us < promise->probe_until_us)
        return (struct probe_answer){.kind = PROBE_RUNS};
    if (promise->n_probes >= PROBE_TRIES)
        return (struct probe_answer){.kind = PROBE_FAILED};
    if (!promise->step_us.valid)
        return (struct probe_answer){.kind = PROBE_NO_STEPS};
    if (stop_us(promise->step_us.value) > (double)PROBE_MAX_US)
        return (struct probe_answer){.kind = PROBE_SLOW_STEPS};
    return ask_gpus(core, task, now_us);
}

/* ---- while it runs ---- */

bool core_is_probed(const struct task *task)
{
    return task->state == TASK_PAUSED && task->run->yield.reason == YIELD_TO_PROBE &&
           !task->run->yield.by_user && !task->ending;
}

int64_t core_probe_end_us(const struct task *task)
{
    return core_is_probed(task) ? task->run->yield.until_us : TIME_NEVER;
}

static bool is_alone(const struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        for (int k = 0; k < gpu->n_residents; k++)
            if (gpu->residents[k].task != task->id && !gpu->residents[k].is_stopped)
                return false;
    }
    return true;
}

bool core_is_probe_over(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task_yield *yield = &task->run->yield;
    const struct task *promised = core_find_task(core, yield->to_task);
    bool is_time = now_us >= yield->until_us || now_us < yield->since_us; /* the clock was set */
    return is_time || !promised || promised->state != TASK_RUNNING || promised->ending ||
           promised->run->promise.slowdown.valid || !is_alone(core, promised);
}
