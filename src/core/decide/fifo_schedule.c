/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit for the cost of preemption: a task should end within 1.5 times its completion time under
 * first come, first served on whole GPUs (finish-time fairness, as in Themis, NSDI 2020). That time
 * is known when it comes, if the times of the tasks before it are: each gets the GPUs that are free
 * first, no task starts before one that came earlier, and none is disturbed.
 *
 * Example: one GPU, tasks of 60, 30 and 10 min at once: they would end after 60, 90 and 100 min. So
 * they have to end within 90, 135 and 150 min. By rank the order is 10, 30, 60: the first would end
 * after 100 min. But its latest start, 90 - 60 x 1.5 = 0 min, has come: it starts at once.
 *
 * A task comes when it first waits in its queue. A held task, or one that waits for a begin time, a
 * dependency or a limit, delays no other task. A task that is held later gives up its place, and
 * comes again when it is released:
 *
 *     t=0   submit a, 100 s, held      no place: it may never come
 *     t=10  submit b, 100 s            as if a were not there
 *     t=50  release a                  after b, and its completion time counts from now on
 *
 * If preemption is switched on while tasks wait or run, all of them come at once, in the order of
 * their submission, each since it last began to wait.
 *
 * A task that ends before its expected time (it is cancelled, fails, or was expected to take
 * longer) gives the rest of its time back: a task that comes then waits at most for what the live
 * tasks still need, one after the other. The latest starts of waiting tasks are kept, unless that
 * halves the time until then. So each of them is decided a few times at most.
 *
 * An early end only marks the schedule as too long (state/fifo_marks.c). It is shortened once, at
 * the end of the step, however many tasks end in it. Cancels come one per step, and an array may
 * have 10,000: a cancel leaves it to the next step of another kind, and the core wants a TICK at
 * once:
 *
 *     CANCEL 1   END 1
 *     CANCEL 2   END 2
 *     TICK       LATEST_START of tasks that wait, if it is much earlier now; FIFO
 *
 * Arrivals are marked, too, and get their places at the end of the step.
 *
 * The schedule and the latest starts are decisions in the log: a restart, which knows live tasks
 * only, could not calculate them again. Nor does it know whether the log ends between CANCEL and
 * FIFO: it takes the schedule to be too long. If it is not, that is harmless: shortening never
 * makes a time later.
 *
 * A log from before tasks could come later than they were submitted does not say when they came:
 * the time in their queue is taken, and a wait before that is missing in what the look-ahead
 * (policy/lookahead.c) compares. This ends with those tasks.
 *
 * The cost, with n live tasks on g GPUs: g steps for a submission, n x g for a step that shortens.
 */
#include "core/decide/fifo_schedule.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "core/ask/latest_start.h"
#include "core/decide/effects.h"
#include "core/questions.h"
#include "core/state/fifo_marks.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* ---- the schedule ---- */

static int64_t latest_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A time as it can stand in the log. */
static int64_t limit_time(int64_t time_us)
{
    return time_us < EVENT_NUMBER_MAX ? latest_of(time_us, 0) : EVENT_NUMBER_MAX;
}

/* When the schedule has its i-th GPU of n_gpus free. GPUs that came after it are free. */
static int64_t free_us_at(const struct fifo_schedule *fifo, int i, int n_gpus)
{
    int known = i - (n_gpus - fifo->n);
    return known >= 0 ? fifo->free_us[known] : 0;
}

/* Appends a task, and returns when it ends. */
static int64_t append_task(
    struct fifo_schedule *fifo, int gpus, int64_t not_before_us, int64_t takes_us)
{
    int64_t *free_us = fifo->free_us;
    fifo->last_start_us = latest_of(
        latest_of(free_us[gpus - 1], fifo->last_start_us), not_before_us);
    int64_t end_us = limit_time(fifo->last_start_us + takes_us);
    int i = gpus;
    for (; i < fifo->n && free_us[i] < end_us; i++)
        free_us[i - gpus] = free_us[i];
    for (int k = i - gpus; k < i; k++)
        free_us[k] = end_us;
    return end_us;
}

/* A copy of the schedule, with all GPUs, to be changed and decided. Returns NULL without memory. */
static struct fifo_schedule *begin_schedule(struct core *core)
{
    struct fifo_schedule *next = &core->next_fifo;
    next->n = core->view.n_gpus;
    if (ARRAY_RESERVE(next->free_us, next->capacity, next->n) < 0)
        return NULL;
    for (int i = 0; i < next->n; i++)
        next->free_us[i] = free_us_at(&core->fifo, i, next->n);
    next->last_start_us = core->fifo.last_start_us;
    return next;
}

/* The schedule is at most that of the live tasks. */
static void limit_schedule(struct fifo_schedule *live, const struct fifo_schedule *fifo)
{
    for (int i = 0; i < live->n; i++)
        if (free_us_at(fifo, i, live->n) < live->free_us[i])
            live->free_us[i] = free_us_at(fifo, i, live->n);
    if (fifo->last_start_us < live->last_start_us)
        live->last_start_us = fifo->last_start_us;
}

static bool is_same_schedule(const struct fifo_schedule *next, const struct fifo_schedule *fifo)
{
    bool is_same = next->last_start_us == fifo->last_start_us;
    for (int i = 0; i < next->n && is_same; i++)
        is_same = next->free_us[i] == free_us_at(fifo, i, next->n);
    return is_same;
}

static int decide_schedule(struct core *core, int64_t now_us)
{
    const struct fifo_schedule *next = &core->next_fifo;
    if (is_same_schedule(next, &core->fifo))
        return 0;
    struct event event = {.kind = EVENT_FIFO,
        .time_us = now_us,
        .fifo = {next->last_start_us, next->free_us, next->n}};
    return core_decide(core, &event);
}

/* ---- latest starts ---- */

static int64_t since_us(const struct task *task)
{
    return task->latest_start_us ? task->fair_since_us : task->queued_us;
}

/* At least 1: with 0, the task would have none. */
static int64_t latest_start_us(const struct task *task, int64_t fifo_end_us)
{
    double fifo_us = (double)(fifo_end_us - since_us(task));
    double expected_us = task->request.expect.time_us.value;
    int64_t latest_us = since_us(task) + (int64_t)(CORE_STRETCH_MAX * fifo_us) -
                        (int64_t)(CORE_SLOWDOWN_MEAN * expected_us);
    return latest_of(limit_time(latest_us), 1);
}

static int decide_latest_start(
    struct core *core, const struct task *task, int64_t latest_us, int64_t now_us)
{
    struct event event = {.kind = EVENT_LATEST_START,
        .time_us = now_us,
        .task = task->id,
        .latest_start_us = latest_us};
    return core_decide(core, &event);
}

/* Appends the tasks that have arrived. */
static int append_new(struct core *core, struct fifo_schedule *next,
    const struct fifo_arrivals *arrivals, int64_t now_us)
{
    int r = 0;
    for (int i = core_task_position(core, arrivals->first); i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->id > arrivals->last)
            break;
        if (!core_has_fifo_place(core, task) || task->latest_start_us)
            continue;
        int64_t end_us = append_task(
            next, task->request.gpus, task->queued_us, (int64_t)task->request.expect.time_us.value);
        r = decide_latest_start(core, task, latest_start_us(task, end_us), now_us);
    }
    return r;
}

/* ---- early ends ---- */

static bool is_much_earlier(const struct task *task, int64_t latest_us, int64_t now_us)
{
    return task->latest_start_us > now_us &&
           latest_us - now_us < (task->latest_start_us - now_us) / 2;
}

/* The schedule of the live tasks alone, one after the other from now on. */
static int append_live(struct core *core, struct fifo_schedule *next, int64_t now_us)
{
    int r = 0;
    memset(next->free_us, 0, (size_t)next->n * sizeof *next->free_us);
    next->last_start_us = 0;
    for (int i = 0; i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (!core_has_fifo_place(core, task) || !task->latest_start_us)
            continue;
        int64_t end_us = append_task(next, task->request.gpus, now_us, task_rest_us(task, now_us));
        int64_t latest_us = latest_start_us(task, end_us);
        if (task->queue && is_much_earlier(task, latest_us, now_us))
            r = decide_latest_start(core, task, latest_us, now_us);
    }
    return r;
}

/* Removes the marks. Returns whether the schedule can be shortened. */
static bool take_marks(struct core *core, int64_t now_us, struct fifo_arrivals *ret_arrivals)
{
    const struct fifo_schedule *fifo = &core->fifo;
    bool is_long = core->is_fifo_long;
    *ret_arrivals = core->fifo_arrivals;
    core->is_fifo_long = false;
    core->fifo_arrivals = (struct fifo_arrivals){0};
    return is_long && fifo->n > 0 && fifo->free_us[fifo->n - 1] > now_us;
}

int core_update_fifo(struct core *core, int64_t now_us)
{
    struct fifo_arrivals arrivals;
    bool shortens = take_marks(core, now_us, &arrivals);
    int r = 0;
    if (!core->settings.preempt || (!shortens && arrivals.last == 0))
        return 0;
    struct fifo_schedule *next = begin_schedule(core);
    if (!next)
        return -ENOMEM;
    if (shortens) {
        r = append_live(core, next, now_us);
        limit_schedule(next, &core->fifo);
    }
    if (r == 0)
        r = append_new(core, next, &arrivals, now_us);
    return r == 0 ? decide_schedule(core, now_us) : r;
}
