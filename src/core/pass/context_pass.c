/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of suspended tasks stay on their GPU as long as no task wants their memory
 * (ask/context_place.h). Here they leave: where the next task cannot start or be resumed on a GPU,
 * and could without them, because it needs the GPU for itself or that memory. The next are the head
 * of the main queue and the suspended tasks that wait to be resumed. What is on its way is waited
 * for, and so is the first sample after it.
 *
 * So they do where a running task waits for that memory with no other task on its GPU.
 *
 * A context that the driver refused to take is not counted on until it is tried again, after 10 s
 * (state/apply_yield.c): none of the others leaves, and no task stops, for a task that could not do
 * without it.
 *
 * Example: one GPU of 40 GiB, contexts of a and b, 1 GiB each, and c, which needs 39.5 GiB. The
 * contexts of a and b leave, and c starts. If c needs 38.5 GiB, one is enough.
 */
#include "core/pass/context_pass.h"

#include "core/ask/context_place.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/waits.h"
#include "core/decide/give_way.h"
#include "core/memory_domain.h"
#include "core/state/tasks.h"

enum { TRIES_MAX = 64 }; /* chosen, to keep a pass short: suspended tasks that are tried */

static bool is_any_leaving(const struct core *core, const struct gpu_view *gpu)
{
    bool is_any = false;
    for (int i = 0; i < gpu->n_absent; i++)
        is_any |= core_find_task(core, gpu->absent[i].task)->run->yield.is_relocating;
    return is_any;
}

/* How much has to leave the GPU for the task; INFINITY: all; 0: none, or that would not help. */
static double wanted_bytes(const struct core *core, const struct gpu_view *gpu,
    const struct verdict *verdict, int64_t now_us)
{
    double leavable = core_leavable_bytes(core, gpu, CONTEXT_FOR_START, now_us);
    switch (verdict->kind) {
    case VERDICT_NOT_IDLE:
        return gpu->n_residents == 0 && !memory_domain_has_others(gpu) && leavable > 0 ? INFINITY
                                                                                       : 0;
    case VERDICT_MEMORY_SHORT:
    case VERDICT_MEMORY_KEPT:
        return verdict->have + leavable >= verdict->limit ? verdict->limit - verdict->have : 0;
    default:
        return 0;
    }
}

/* The task's own context is not in its way. */
static int take_contexts(struct core *core, const struct gpu_view *gpu, const struct task *to,
    enum context_use use, double wanted, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < gpu->n_absent && wanted > 0 && r == 0; i++) {
        const struct task *task = core_find_task(core, gpu->absent[i].task);
        if (task == to || !core_may_context_leave(task, use, now_us))
            continue;
        wanted -= reading_assume(task->run->yield.context_bytes, 0);
        r = core_relocate_copy(core, task, now_us);
    }
    return r;
}

/* A task waits for memory, and no other is on its GPU. */
static int make_way_for_waiter(struct core *core, const struct task *waiting, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[waiting->gpus[0]];
    double wanted = memory_wait_enough_bytes(&waiting->run->memory_wait) -
                    reading_assume(gpu_view_free_bytes(gpu), INFINITY);
    if (gpu->n_residents != 1 ||
        wanted > core_leavable_bytes(core, gpu, CONTEXT_FOR_WAIT, now_us) ||
        is_any_leaving(core, gpu) || gpu->sampled_us < gpu->mix_since_us)
        return 0;
    return take_contexts(core, gpu, waiting, CONTEXT_FOR_WAIT, wanted, now_us);
}

static int make_way_for_waiters(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && core->n_memory_waits && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->run->memory_wait.bytes && task->state == TASK_RUNNING && task->n_gpus == 1)
            r = make_way_for_waiter(core, task, now_us);
    }
    return r;
}

/* core->placement has the verdicts of the task. */
static int make_way(struct core *core, const struct task *task, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->view.n_gpus && r == 0; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        if (gpu->n_absent == 0 || is_any_leaving(core, gpu) || gpu->sampled_us < gpu->mix_since_us)
            continue;
        double wanted = wanted_bytes(core, gpu, &core->placement.verdicts[i], now_us);
        r = take_contexts(core, gpu, task, CONTEXT_FOR_START, wanted, now_us);
    }
    return r;
}

int core_free_of_contexts(struct core *core, int64_t now_us)
{
    const struct task *head = core->any_context ? core_head_of_queue(core) : NULL;
    int r = core->any_context ? make_way_for_waiters(core, now_us) : 0, tries = TRIES_MAX;
    if (head && r == 0 && core_try_gpus(core, head, now_us, &core->placement) != PLACE_NOW)
        r = make_way(core, head, now_us);
    for (const struct task *task = core->suspended_queue.first;
         task && core->any_context && r == 0 && tries--; task = task->next)
        if (task->run->yield.retry_us <= now_us &&
            core_try_resumption(core, task, true, now_us, &core->placement) != PLACE_NOW)
            r = make_way(core, task, now_us);
    return r;
}
