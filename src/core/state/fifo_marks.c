/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule that first come, first served on whole GPUs would have come to
 * (decide/fifo_schedule.c) is a decision in the log, and applied here. Between two decisions the
 * state only notes what may make it wrong: tasks that have arrived, and whether a task has left it
 * early. So however many tasks end in a step, the schedule is calculated once.
 *
 * A task is noted when it first waits in its queue. A held task, or one that waits for a begin
 * time, a dependency or a limit, has no place. A task that is held later gives up its place.
 */
#include "core/state/fifo_marks.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "core/state/state.h"

int core_apply_fifo(struct core *core, const struct event *event)
{
    struct fifo_schedule *fifo = &core->fifo;
    if (event->fifo.n < 1 || event->fifo.n > core->view.n_gpus)
        return CORE_NOT_NOW;
    if (ARRAY_RESERVE(fifo->free_us, fifo->capacity, event->fifo.n) < 0)
        return -ENOMEM;
    fifo->n = event->fifo.n;
    memcpy(fifo->free_us, event->fifo.free_us, (size_t)fifo->n * sizeof *fifo->free_us);
    fifo->last_start_us = event->fifo.last_start_us;
    return 0;
}

bool core_has_fifo_place(const struct core *core, const struct task *task)
{
    return task->request.expect.time_us.valid && task->request.gpus > 0 &&
           task->request.gpus <= core->view.n_gpus && task->state != TASK_HELD &&
           task->state != TASK_BLOCKED && !task_state_is_done(task->state) && !task_was_ended(task);
}

void core_note_arrival(struct core *core, const struct task *task)
{
    struct fifo_arrivals *arrivals = &core->fifo_arrivals;
    if (!core->settings.preempt || task->latest_start_us || !core_has_fifo_place(core, task))
        return;
    if (arrivals->last == 0 || task->id < arrivals->first)
        arrivals->first = task->id;
    if (task->id > arrivals->last)
        arrivals->last = task->id;
}

void core_leave_fifo(struct core *core, struct task *task)
{
    core->is_fifo_long |= task->latest_start_us > 0;
    task->latest_start_us = 0;
}

void core_doubt_fifo(struct core *core)
{
    core->is_fifo_long = true;
    core->fifo_arrivals = (struct fifo_arrivals){0, UINT64_MAX};
}

bool core_is_fifo_marked(const struct core *core)
{
    return core->is_fifo_long || core->fifo_arrivals.last > 0;
}

/* What the ended task has not used of its expected time. */
static int64_t unused_us(const struct task *task)
{
    struct reading time_us = task->request.expect.time_us;
    double speed = task->run->kind_speed > 0 ? task->run->kind_speed : 1;
    return (int64_t)(reading_assume(time_us, 0) / speed) - task->executed_us;
}

/* Chosen: far above errors of rounding. A task that ends sooner than that before its time is on
 * time. */
#define EARLY_US SECOND_US

void core_note_early_end(struct core *core, const struct task *ended)
{
    if (ended->latest_start_us && unused_us(ended) >= EARLY_US)
        core->is_fifo_long = true;
}
