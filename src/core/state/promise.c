/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A promise of speed limits the slowdown of a task by the others on its GPUs (docs/promise.md). The
 * driver reports how many times as long it takes now, as its steps a second say (SPEED). While that
 * is too long, the tasks beside it give way (pass/promise_pass.c); once the promise has been kept
 * for the hold, one of them continues. If it is missed again soon after that, the hold is doubled,
 * so that a mix that does not fit is not tried all the time.
 *
 * A promise is of the task's whole time, and what was lost before the others gave way is made up
 * for: as long as the task has been slower than promised in all, none comes beside it. An example
 * of a promise of 1.2, beside tasks that delay it more than predicted:
 *
 *     t=0      placed beside others          1.5 now       1.5 in all
 *     t=31     they have given way           1.0           1.5
 *     t=151    the hold is over              1.0           1.07: one may go on
 *
 * Had it been 200 s until they gave way, it would be 1.26 at the end of the hold, and they would
 * wait for 80 s more.
 *
 * Speeds of five seconds vary by some per cent, and a task is placed where the promise just holds.
 * So of two reports both are often too slow by chance, and a task would give way for nothing: in
 * simulation, with four hardly any promise was missed (docs/measured/promise-simulated.md).
 *
 * A task writes the count of its steps itself, and could claim to be slow to have its GPU for less
 * than an exclusive task is charged. So a report is believed up to twice the delay that the
 * interference model predicts from the activity of all tasks there, which the GPU measures:
 *
 *     predicted   reported   believed
 *     1.30        1.45       1.45
 *     1.30        3.00       1.60
 *     1.02        3.00       1.04      beside a task that hardly uses the GPU
 *
 * Tasks without a promise are measured alike. To be one too many (state/crowding.c) is their way of
 * missing it: then it is they who give way, to the slowest beside them, of which the GPU is held as
 * for a promise.
 *
 * Reports are not in the log. After a restart, and where no steps are found, a promise is held by
 * prediction only (policy/promise_guard.c). Tasks that had given way stay stopped for the rest of
 * the hold.
 */
#include "core/state/promise.h"

#include <math.h>

#include "base/clock.h"
#include "core/gpu_sharers.h"
#include "core/hold.h"
#include "core/state/charges.h"
#include "core/state/crowding.h"
#include "core/state/delays.h"
#include "core/state/tasks.h"
#include "sharing/interference_cache.h"

/* Chosen. */
#define MISSED_US (19 * SECOND_US) /* four reports in a row: see above */
#define SETTLE_US (12 * SECOND_US) /* the reports after a change show its effect */
#define HOLD_US   (120 * SECOND_US)

/* Chosen: the median error of a predicted slowdown is 12 %, the largest a factor of two
 * (docs/measured/sharing.md). */
#define BELIEVED_DELAY 2

/* Most reports change nothing that a placement depends on, and a scheduling pass after each would
 * be most of the work. While a promise is missed, a task may have to give way; else one may be
 * placed where the task has become faster than at the last pass for it, or its speed is no longer
 * known. */
static void ask_for_pass(struct core *core, struct task_promise *promise, bool was_missed)
{
    double slowdown = promise->slowdown.valid ? promise->slowdown.value : 0;
    bool is_faster = slowdown * PROMISE_TOLERANCE < promise->passed_slowdown;
    bool is_slower = slowdown > promise->passed_slowdown * PROMISE_TOLERANCE;
    if (is_faster || is_slower)
        promise->passed_slowdown = slowdown;
    core->pass_needed |= is_faster || was_missed || promise->missed_since_us;
}

void core_begin_promise(struct task *task)
{
    task->run->promise = (struct task_promise){0};
}

static int64_t hold_us(const struct task *task)
{
    return HOLD_US << task->run->promise.doublings;
}

int64_t core_promise_opens_us(const struct task *task)
{
    const struct task_promise *promise = &task->run->promise;
    bool is_late = promise->missed_since_us || core_is_behind_promise(task);
    int64_t missed_us = is_late ? promise->reported_us + PROMISE_REPORT_VALID_US : 0;
    int64_t settled_us = promise->gave_way_us ? promise->gave_way_us + hold_us(task) : 0;
    int64_t opens_us = missed_us > settled_us ? missed_us : settled_us;
    if (!core_has_promise(task))
        return settled_us;
    return promise->probe_until_us > opens_us ? promise->probe_until_us : opens_us;
}

bool core_is_behind_promise(const struct task *task)
{
    const struct reading *average = &task->run->promise.average;
    return average->valid && average->value > task->request.slowdown_max.value;
}

bool core_is_promise_missed(const struct task *task, int64_t now_us)
{
    const struct task_promise *promise = &task->run->promise;
    return promise->missed_since_us && now_us - promise->missed_since_us >= MISSED_US &&
           now_us - promise->changed_us >= SETTLE_US;
}

struct resident_promise core_resident_promise(const struct task *task)
{
    const struct task_promise *promise = &task->run->promise;
    if (!core_has_promise(task))
        return (struct resident_promise){.opens_us = core_promise_opens_us(task)};
    return (struct resident_promise){.slowdown_max = task->request.slowdown_max.value,
        .opens_us = core_promise_opens_us(task),
        .measured = promise->slowdown,
        .until_us = promise->reported_us + PROMISE_REPORT_VALID_US};
}

static void update_residents(struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        struct resident *resident = gpu_view_resident(gpu, task->id);
        if (!resident)
            continue;
        core_accrue(core, gpu, now_us); /* it is charged for what it keeps from others */
        resident->promise = core_resident_promise(task);
    }
}

/* How many times as long as alone the model lets the task take now. */
static double predicted_slowdown(const struct core *core, const struct task *task)
{
    double slowdown = 1;
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        struct sharer sharers[GPU_SHARERS_MAX];
        double speeds[GPU_SHARERS_MAX];
        const struct resident *here = gpu_view_resident(gpu, task->id);
        if (!here || gpu->n_residents > GPU_SHARERS_MAX)
            return INFINITY;
        gpu_sharers_list(gpu, sharers);
        interference_speeds_cached(
            core->view.constants ? core->view.constants : &interference_measured, sharers,
            gpu->n_residents, speeds);
        int at = (int)(here - gpu->residents);
        slowdown = fmax(
            slowdown, gpu_sharer_slowdown(core->view.constants, &sharers[at], speeds[at]));
    }
    return slowdown;
}

/* Adds the window since the last report, unless that was too long ago. */
static void note_average(struct task_promise *promise, int64_t now_us)
{
    double window_s = (double)(now_us - promise->reported_us) / (double)SECOND_US;
    if (!promise->slowdown.valid || !promise->reported_us ||
        now_us - promise->reported_us > PROMISE_REPORT_VALID_US)
        return;
    promise->windows_s += window_s;
    promise->alone_s += window_s / promise->slowdown.value;
    promise->average = reading_of(promise->windows_s / promise->alone_s);
}

static bool is_missed(const struct core *core, const struct task *task, int64_t now_us)
{
    struct reading slowdown = task->run->promise.slowdown;
    if (!core_has_promise(task))
        return core_is_one_too_many(core, task, now_us);
    return slowdown.valid && slowdown.value > task->request.slowdown_max.value * PROMISE_TOLERANCE;
}

static void note_slowdown(
    struct core *core, struct task *task, struct reading slowdown, int64_t now_us)
{
    struct task_promise *promise = &task->run->promise;
    double believed = 1 + BELIEVED_DELAY * (predicted_slowdown(core, task) - 1);
    promise->is_doubted = slowdown.valid && slowdown.value > believed * PROMISE_TOLERANCE;
    slowdown.value = fmin(slowdown.value, fmax(1, believed));
    bool was_missed = promise->missed_since_us != 0, was_behind = core_is_behind_promise(task);
    promise->slowdown = slowdown;
    note_average(promise, now_us);
    promise->reported_us = slowdown.valid ? now_us : 0;
    bool now_missed = is_missed(core, task, now_us);
    if (!now_missed || !promise->missed_since_us)
        promise->missed_since_us = now_missed ? now_us : 0;
    core->view.has_promises |= now_missed;
    core->pass_needed |= now_missed;
    if (!core_has_promise(task))
        return;
    ask_for_pass(core, promise, was_missed || (was_behind && !core_is_behind_promise(task)));
    update_residents(core, task, now_us);
}

static bool is_possible(struct reading reading)
{
    return !reading.valid || reading.value > 0;
}

int core_apply_speed(struct core *core, struct task *task, const struct event *event)
{
    struct reading slowdown = event->slowdown, step_us = event->step_us;
    if (task->state != TASK_RUNNING || !is_possible(slowdown) || !is_possible(step_us))
        return CORE_NOT_NOW;
    if (slowdown.valid)
        core_observe_delay(core, task, slowdown.value);
    bool is_of_use = core_has_promise(task) ||
                     (core->settings.thins_out && !task->request.service.is_service);
    if (is_of_use) {
        task->run->promise.step_us = step_us;
        note_slowdown(core, task, slowdown, event->time_us);
    }
    return 0;
}

/* ---- tasks come and give way ---- */

void core_note_joined_promise(struct core *core, const struct task *task, int gpu, int64_t now_us)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    for (int i = 0; i < view->n_residents && core->view.has_promises; i++) {
        struct task *other = core_find_task(core, view->residents[i].task);
        if (other == task && view->n_residents == 1)
            continue;
        struct task_promise *promise = &other->run->promise;
        promise->joined_us = promise->changed_us = now_us;
        promise->missed_since_us = 0;
        update_residents(core, other, now_us);
    }
}

void core_note_gave_way_to_promise(struct core *core, const struct task *task, int64_t now_us)
{
    struct task *other = core_find_task(core, task->run->yield.to_task);
    if (!other || other->request.service.is_service || !task_has_run(other))
        return;
    core->view.has_promises = true;
    struct task_promise *promise = &other->run->promise;
    bool has_joined = promise->gave_way_us && promise->joined_us > promise->gave_way_us;
    promise->doublings = hold_next_doublings(
        promise->doublings, HOLD_US, has_joined ? promise->joined_us : 0, now_us);
    promise->changed_us = promise->gave_way_us = now_us;
    promise->missed_since_us = 0;
    promise->n_gave_way++;
    update_residents(core, other, now_us);
}

static struct task_promise *probed_promise(const struct core *core, const struct task *task)
{
    struct task *promised = core_find_task(core, task->run->yield.to_task);
    bool is_one = promised && core_has_promise(promised) && task_has_run(promised);
    return is_one ? &promised->run->promise : NULL;
}

/* Several tasks may pause at once for one probe. */
void core_note_probe_begun(struct core *core, const struct task *task, int64_t now_us)
{
    struct task_promise *promise = probed_promise(core, task);
    if (!promise)
        return;
    promise->n_probes += promise->probe_begun_us != now_us;
    promise->probe_begun_us = now_us;
    promise->probe_until_us = task->run->yield.until_us;
    update_residents(core, core_find_task(core, task->run->yield.to_task), now_us);
}

void core_note_probe_ended(struct core *core, const struct task *task, int64_t now_us)
{
    struct task_promise *promise = probed_promise(core, task);
    if (!promise)
        return;
    promise->probe_until_us = now_us;
    update_residents(core, core_find_task(core, task->run->yield.to_task), now_us);
}

bool core_waits_for_promise(const struct task *task)
{
    bool has_stopped = task->state == TASK_PAUSED || task->state == TASK_SUSPENDED;
    return has_stopped && task->run->yield.reason == YIELD_TO_PROMISE && !task->run->yield.by_user;
}
