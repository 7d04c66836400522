/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose fault it was. A fatal fault of one MPS client, as an illegal address is, stops the work of
 * all clients of its server on that GPU, and each of them hears of it as if it were its own.
 * Nothing tells whose it was: on an H200 the MPS server's log and the kernel's Xid line both named
 * a neighbour (docs/measured/mps.md). So all are suspects: each goes on by streams, where a fault
 * hits only the one whose it is.
 */
#include "base/clock.h"
#include "core/core_private.h"

/* Ends that follow a fault by no more than that belong to it: frameworks take a while to fall. */
#define FAULT_WINDOW_US (10 * SECOND_US)

static bool shares_with(const struct task *task, const struct resident *resident)
{
    return resident->task != task->id && resident->sharing == SHARING_MPS &&
           resident->uid == task->uid;
}

static bool has_client_beside(const struct gpu_view *gpu, const struct task *task, int64_t now_us)
{
    bool others_fell = gpu->fault.task && gpu->fault.task != task->id &&
                       gpu->fault.uid == task->uid && now_us - gpu->fault.at_us <= FAULT_WINDOW_US;
    for (int i = 0; i < gpu->n_residents; i++)
        if (shares_with(task, &gpu->residents[i]))
            return true;
    return others_fell;
}

static bool judge_fault(struct core *core, const struct task *task, int64_t now_us)
{
    bool in_company = false;
    for (int i = 0; i < task->n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        in_company |= has_client_beside(gpu, task, now_us);
        gpu->fault.task = task->id;
        gpu->fault.uid = task->uid;
        gpu->fault.at_us = now_us;
    }
    return in_company;
}

void core_attribute_exit(struct core *core, struct task *task, const struct event *event)
{
    bool by_mps = task->share.sharing == SHARING_MPS;
    bool gone = event->exited.failure == FAILURE_GPU_GONE;
    task->not_at_fault = gone || (by_mps && event->exited.failure == FAILURE_MPS);
    if (by_mps && event->exited.failure == FAILURE_GPU_FAULT)
        task->not_at_fault = task->possible_cause = judge_fault(core, task, event->time_us);
}
