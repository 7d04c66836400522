/*
 * Whose fault it was. A fatal fault of one MPS client may stop the work of all clients of its server on that GPU, and
 * each of them hears of it as if it were its own (NVIDIA's MPS guide, "Client Exceptions / Errors").
 */
#include "base/clock.h"
#include "core/core_private.h"

/* Ends that follow a fault by no more than that are taken for its consequence: frameworks take a while to fall. */
#define FAULT_WINDOW_US (10 * SECOND_US)

/* Another task of the same user whose fault stopped one of these GPUs just now; 0: none. */
static uint64_t find_culprit(const struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        if (gpu->fault.task && gpu->fault.task != task->id && gpu->fault.uid == task->uid &&
            now_us - gpu->fault.at_us <= FAULT_WINDOW_US)
            return gpu->fault.task;
    }
    return 0;
}

static void note_fault(struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        gpu->fault.task = task->id;
        gpu->fault.uid = task->uid;
        gpu->fault.at_us = now_us;
    }
}

void core_judge_fault(struct core *core, struct task *task, const struct event *event)
{
    const struct task_exit *exit = &event->exited;
    task->innocent = false;
    task->culprit = 0;
    if (task->share.sharing != SHARING_MPS || (exit->failure != FAILURE_GPU_FAULT && exit->failure != FAILURE_MPS))
        return;
    uint64_t culprit = find_culprit(core, task, event->time_us);
    bool by_others = exit->failure == FAILURE_MPS || exit->blame == BLAME_OTHERS;
    if (by_others || (exit->blame == BLAME_UNKNOWN && culprit)) {
        task->innocent = true;
        task->culprit = culprit;
    } else {
        note_fault(core, task, event->time_us);
    }
}
