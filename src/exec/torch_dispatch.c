/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which process of a task gets which order of PyTorch's profiler. Each process of the task
 * gets each order once, when it asks. The order of the submission is for all processes, whenever
 * they start. One of the file is for those that run when it comes: they all ask within some
 * seconds. A process that asks for the first time later does not get it:
 *
 *     0 s    processes 1 and 2 run
 *     60 s   colloc profile --steps=5    both ask within 5 s, and get it
 *     1 h    process 3 starts            it gets the order of the submission, if there is one
 *
 * As an order is read when a process asks, one that comes while no process runs is for the next.
 *
 * The number of an order is a wall clock's time, which may step back: a number that differs is
 * another order.
 */
#include "exec/torch_dispatch.h"

#include <stddef.h>

#include "base/clock.h"

void torch_dispatch_submitted(struct torch_dispatch *dispatch, const struct torch_order *order)
{
    dispatch->submitted = *order;
    dispatch->n_taken = order->number != 0;
}

void torch_dispatch_take(
    struct torch_dispatch *dispatch, const struct torch_order *order, int64_t now_us)
{
    if (order->number == dispatch->latest.number)
        return;
    dispatch->latest = *order;
    dispatch->latest_us = now_us;
    dispatch->n_taken++;
}

struct torch_process *torch_dispatch_find(
    struct torch_dispatch *dispatch, pid_t pid, int64_t now_us)
{
    for (int i = 0; i < dispatch->n_processes; i++)
        if (dispatch->processes[i].pid == pid)
            return &dispatch->processes[i];
    if (dispatch->n_processes == TORCH_PROCESSES_MAX)
        return NULL;
    bool is_fresh = now_us - dispatch->latest_us <= TORCH_ORDER_FRESH_S * SECOND_US;
    struct torch_process *process = &dispatch->processes[dispatch->n_processes++];
    *process = (struct torch_process){.pid = pid, .number = is_fresh ? 0 : dispatch->latest.number};
    return process;
}

struct torch_given torch_dispatch_next(struct torch_dispatch *dispatch, pid_t pid, int64_t now_us)
{
    struct torch_process *process = torch_dispatch_find(dispatch, pid, now_us);
    struct torch_given given = {NULL, 0};
    if (process && process->number != dispatch->latest.number)
        given = (struct torch_given){&dispatch->latest, dispatch->n_taken};
    else if (process && !process->has_submitted && dispatch->submitted.number)
        given = (struct torch_given){&dispatch->submitted, 1};
    if (given.order) {
        process->has_submitted = true;
        process->number = dispatch->latest.number;
    }
    return given;
}
