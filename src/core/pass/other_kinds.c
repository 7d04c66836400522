/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs of several kinds in one server, under policies without backfill: while the head of the queue
 * waits for an A100, the tasks behind it may start on the V100s, which it cannot use.
 *
 * The GPUs that the head may have are closed to all behind it; those behind are then tried in
 * order, and each that has to wait closes its GPUs too. So a task passes only tasks that could not
 * have used its GPUs, and they lose nothing. (CPUs and main memory that the head needs are left to
 * it.) Where all GPUs suit the head, as in a server of equal GPUs, nothing is tried.
 *
 * An example: GPU 0 is an A100, GPU 1 a V100, both are idle but GPU 0 runs task 1. Task 2 wants an
 * A100 and waits. Task 3 wants any GPU: it gets GPU 1. Task 4 wants an A100: it waits behind 2.
 */
#include "core/pass/other_kinds.h"

#include "core/ask/host_check.h"
#include "core/ask/placement.h"
#include "core/decide/place.h"
#include "core/questions.h"
#include "core/state/state.h"

/* Closes the GPUs that the task may have. Returns how many GPUs remain open. */
static int close_gpus(struct core *core, const struct task *task)
{
    int n_open = 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        if (core->closed[i] || !core->view.gpus[i].id.is_place)
            continue;
        if (cluster_view_is_of_kind(&core->view, i, task))
            core->closed[i] = task->id;
        else
            n_open++;
    }
    return n_open;
}

static bool has_open_gpus(const struct core *core, const struct task *task)
{
    int n = 0;
    for (int i = 0; i < core->view.n_gpus && n < task->request.gpus; i++)
        n += !core->closed[i] && cluster_view_suits(&core->view, i, task);
    return n == task->request.gpus;
}

static bool may_pass(const struct core *core, const struct task *task, const struct task *head)
{
    return task != head && task->request.need.kind != NEED_PENDING &&
           !core_leaves_host_to(core, task, head) && has_open_gpus(core, task);
}

/* Tries one task behind the head. `n_open` becomes 0 when no GPU is left to try. */
static int try_behind(struct core *core, struct task *task, int64_t now_us, int *n_open)
{
    if (core_finds_gpus(core, task, core->closed, now_us, &core->placement))
        return core_place_task(core, task, core->placement.gpus, now_us);
    *n_open = close_gpus(core, task);
    return 0;
}

/* Chosen, to keep a pass short: the number of tasks examined, and of those the number tried. */
#define PASS_DEPTH_MAX 256
#define PASS_TRIES_MAX 32

/* Those behind the head in the queues, in the order of the queues. */
static int try_all_behind(struct core *core, const struct task *head, int64_t now_us, int n_open)
{
    const struct task_queue *queue;
    int r = 0, tries = PASS_TRIES_MAX, depth = PASS_DEPTH_MAX;
    for (int i = 0; (queue = core_main_queue(core, i)) && r == 0; i++) {
        struct task *next;
        for (struct task *task = queue->first; task && r == 0 && n_open > 0 && depth-- > 0;
             task = next) {
            next = task->next;
            if (may_pass(core, task, head) && tries-- > 0)
                r = try_behind(core, task, now_us, &n_open);
        }
    }
    return r;
}

int core_pass_other_kinds(struct core *core, const struct task *head, int64_t now_us)
{
    if (core->reserved_for || task_takes_any_kind(head))
        return 0;
    for (int i = 0; i < core->view.n_gpus; i++)
        core->closed[i] = 0;
    int n_open = close_gpus(core, head);
    return n_open ? try_all_behind(core, head, now_us, n_open) : 0;
}
