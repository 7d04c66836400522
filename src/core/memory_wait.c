/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that wait for GPU memory. A task whose allocation finds too little free memory does
 * not crash where the library that colloc preloads into it is at work: the allocation waits in the
 * process, and MEMORY_WAIT reports how much it wants. The core answers:
 *
 *   - at once with the true error, if the task would hold more than its GPU has;
 *   - by trying it again, as soon as that much memory is free.
 */
#include "core/core_private.h"

static int answer(struct core *core, const struct task *task, bool is_granted, int64_t now_us)
{
    struct event event = {.kind = EVENT_MEMORY_ANSWER,
        .time_us = now_us,
        .task = task->id,
        .memory_granted = is_granted};
    int r = core_decide(core, &event);
    enum effect_kind effect = is_granted ? EFFECT_GRANT_MEMORY : EFFECT_DENY_MEMORY;
    return r < 0 ? r : core_add_effect(core, effect, task->id, NULL);
}

/* Would the task hold more than one of its GPUs has? */
static bool is_beyond_gpu(const struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        struct reading held = gpu_view_resident(gpu, task->id)->mem_used_bytes;
        double wanted = reading_assume(held, 0) + (double)task->memory_wait.bytes;
        if (wanted > (double)gpu->id.mem_total_bytes)
            return true;
    }
    return false;
}

/* Is that much free on each of its GPUs? On which one the allocation waits is not known. */
static bool is_free(const struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++) {
        struct reading free_bytes = gpu_view_free_bytes(&core->view.gpus[task->gpus[i]]);
        if (!free_bytes.valid || free_bytes.value < (double)task->memory_wait.bytes)
            return false;
    }
    return true;
}

static int settle(struct core *core, const struct task *task, int64_t now_us)
{
    if (is_beyond_gpu(core, task))
        return answer(core, task, false, now_us);
    return is_free(core, task) ? answer(core, task, true, now_us) : 0;
}

int core_settle_memory_waits(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && core->n_memory_waits && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->memory_wait.bytes && task->state == TASK_RUNNING)
            r = settle(core, task, now_us);
    }
    return r;
}
