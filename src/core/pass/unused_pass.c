/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that has not used its GPUs for the setting `unused-after` gives its memory back when
 * another one waits for it: the first suspended task that finds no room, else the head of the main
 * queue. It stays suspended until it calls CUDA. Where no task waits, it keeps its memory. An
 * allocation that waits comes first, and has its own rules (memory_answer.c).
 *
 * The choice is that of stop_choice.c: a task on each GPU that the waiting one lacks, if that is
 * enough; of several, the one that is suspended and resumed soonest.
 *
 * Example: a notebook has held 30 of 40 GiB since yesterday. A training of 20 GiB is submitted: the
 * notebook is suspended, and the training starts. When a cell of the notebook is run again, it
 * waits until 30 GiB are free.
 */
#include "core/pass/unused_pass.h"

#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"
#include "core/ask/waits.h"
#include "core/pass/stop_choice.h"
#include "core/state/state.h"

static bool may_be_stopped(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    return task->request.priority <= head->request.priority && task->state == TASK_RUNNING &&
           !task->ending && !task->run->memory_wait.bytes && core_is_inactive(core, task) &&
           core_may_suspend(core, task, now_us);
}

static bool costs_less(
    const struct core *core, const struct task *a, const struct task *b, int64_t now_us)
{
    (void)now_us;
    return core_yield_cost_us(core, a) < core_yield_cost_us(core, b);
}

static const struct stop_rule by_use = {
    may_be_stopped, costs_less, YIELD_UNUSED, .takes_place = false};

/* The oldest suspended task that could be resumed now if there was room. */
static const struct task *first_suspended(struct core *core, int64_t now_us)
{
    for (const struct task *task = core->suspended_queue.first; task; task = task->next)
        if (task->run->yield.retry_us <= now_us && !core_waits_for_turn(task) &&
            core_can_be_served(core, task))
            return task;
    return NULL;
}

int core_reclaim_unused(struct core *core, int64_t now_us)
{
    if (!core->any_inactive)
        return 0;
    const struct task *suspended = first_suspended(core, now_us);
    const struct task *next = suspended ? suspended : core_head_of_queue(core);
    if (!next)
        return 0;
    struct task waiting = suspended ? core_as_waiting(core, suspended) : *next;
    return core_stop_tasks_for(core, &waiting, &by_use, now_us);
}
