/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit for the cost of preemption: a task should end within 1.5 times its completion time under
 * first come, first served on whole GPUs (finish-time fairness, as in Themis, NSDI 2020). That time
 * is known at its submission, if the times of the tasks before it are: each gets the GPUs that are
 * free first, no task starts before one that came earlier, and none is disturbed.
 *
 * Example: one GPU, tasks of 60, 30 and 10 min at once: they would end after 60, 90 and 100 min. So
 * they have to end within 90, 135 and 150 min. By rank the order is 10, 30, 60: the first would
 * end after 100 min. But its latest start, 90 - 60 x 1.5 = 0 min, has come: it starts at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/core_private.h"

#define SLOWDOWN_MEAN 1.5 /* chosen on resampled traces: what sharing costs a task, about */

static int by_time(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* One entry for each GPU: when FIFO would have it free. */
static bool reserve_gpus(struct fifo_schedule *fifo, int n_gpus)
{
    if (ARRAY_RESERVE(fifo->free_us, fifo->capacity, n_gpus) < 0)
        return false;
    for (; fifo->n < n_gpus; fifo->n++)
        fifo->free_us[fifo->n] = 0;
    return true;
}

int core_set_fair_start(struct core *core, struct task *task)
{
    struct fifo_schedule *fifo = &core->fifo;
    struct reading time_us = task->request.expect.time_us;
    int64_t expected_us = (int64_t)reading_assume(time_us, 0), start_us = task->submitted_us;
    int wanted = task->request.gpus;
    if (!core->settings.preempt || !time_us.valid || wanted > core->view.n_gpus)
        return 0;
    if (!reserve_gpus(fifo, core->view.n_gpus))
        return -1;
    qsort(fifo->free_us, (size_t)fifo->n, sizeof *fifo->free_us, by_time);
    if (fifo->free_us[wanted - 1] > start_us)
        start_us = fifo->free_us[wanted - 1];
    if (fifo->last_start_us > start_us)
        start_us = fifo->last_start_us;
    fifo->last_start_us = start_us;
    for (int i = 0; i < wanted; i++)
        fifo->free_us[i] = start_us + expected_us;
    int64_t fifo_us = start_us + expected_us - task->submitted_us;
    task->latest_start_us = task->submitted_us + (int64_t)(CORE_STRETCH_MAX * (double)fifo_us) -
                            (int64_t)(SLOWDOWN_MEAN * (double)expected_us);
    return 0;
}

int64_t core_fifo_completion_us(const struct task *task)
{
    double expected_us = reading_assume(task->request.expect.time_us, 0);
    double limit_us = (double)(task->latest_start_us - task->submitted_us) +
                      SLOWDOWN_MEAN * expected_us;
    return task->latest_start_us ? (int64_t)(limit_us / CORE_STRETCH_MAX) : 0;
}

bool core_is_urgent(const struct core *core, const struct task *task)
{
    return task->latest_start_us && core->last_pass_us >= task->latest_start_us;
}
