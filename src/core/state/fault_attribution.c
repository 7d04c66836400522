/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which task caused a fault. A fatal fault of one MPS client, such as an illegal address, stops the
 * work of all clients of its server on that GPU, and each client gets the error as if it had caused
 * it. Nothing names the cause: on an H200 the MPS server's log and the kernel's Xid line both named
 * another client (docs/measured/mps.md). So each client that ended is a possible cause: all are
 * requeued and run without MPS, where a fault stays in its own process. The task that causes it
 * then fails again; the others complete. A fault of the GPU itself, such as an ECC error, is no
 * task's: the task is requeued, and the GPU's health keeps it from that GPU.
 */
#include "core/state/fault_attribution.h"

#include "base/clock.h"
#include "core/state/state.h"

static bool shares_with(const struct task *task, const struct resident *resident)
{
    return resident->task != task->id && resident->sharing == SHARING_MPS &&
           resident->uid == task->uid;
}

/* Ends within this time after a fault belong to it. Chosen: frameworks take seconds to exit. */
#define FAULT_WINDOW_US (10 * SECOND_US)

static bool had_other_client(const struct gpu_view *gpu, const struct task *task, int64_t now_us)
{
    bool others_ended = gpu->fault.task && gpu->fault.task != task->id &&
                        gpu->fault.uid == task->uid && now_us - gpu->fault.at_us <= FAULT_WINDOW_US;
    for (int i = 0; i < gpu->n_residents; i++)
        if (shares_with(task, &gpu->residents[i]))
            return true;
    return others_ended;
}

static bool record_fault(struct core *core, const struct task *task, int64_t now_us)
{
    bool had_others = false;
    for (int i = 0; i < task->n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        had_others |= had_other_client(gpu, task, now_us);
        gpu->fault.task = task->id;
        gpu->fault.uid = task->uid;
        gpu->fault.at_us = now_us;
    }
    return had_others;
}

void core_attribute_exit(struct core *core, struct task *task, const struct event *event)
{
    bool by_mps = task->run->share.sharing == SHARING_MPS;
    bool by_gpu = event->exited.failure == FAILURE_GPU_GONE || event->exited.by_gpu;
    task->not_at_fault = by_gpu || (by_mps && event->exited.failure == FAILURE_MPS);
    if (by_mps && !by_gpu && event->exited.failure == FAILURE_GPU_FAULT)
        task->not_at_fault = task->possible_cause = record_fault(core, task, event->time_us);
}
