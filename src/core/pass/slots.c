/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time slots: more tasks than fit take turns.
 *
 * A running task that takes turns (struct task_request) is suspended for a waiting one when its
 * slot is over: after the setting `slot_us`, or 20 times as long as it takes to suspend and resume
 * it, if that is longer, so that at most 5 % of its time is lost. It then waits for its next turn,
 * as one does that gave way to an allocation within its slot.
 *
 * Tasks that wait for a turn, and the head of the main queue, come by priority, then in the order
 * in which they have begun to wait. A task is suspended for the first one that still has to wait
 * (stop_choice.c). Of several tasks whose slot has ended, the one that has run longest is
 * suspended. A task does not give its turn to a task of a lower priority. A client of MPS, whose
 * context has stayed on its GPU, waits for its turn there; the others go on elsewhere meanwhile.
 * A task whose context the driver does not take passes the head's reservation where nothing else is
 * on its GPU: its end frees that.
 *
 * Example: slots of 10 min, one GPU, on which one of the tasks 1, 2 and 3 fits. Task 1 runs, 2 and
 * 3 are queued. After 10 min task 1 is suspended and 2 starts; after 10 more 2 is suspended and 3
 * starts; then it is the turn of 1, which has waited longest.
 */
#include "core/pass/slots.h"

#include "base/top_k.h"
#include "core/ask/copy_room.h"
#include "core/ask/deadline.h"
#include "core/ask/giving_way.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"
#include "core/ask/waits.h"
#include "core/decide/give_way.h"
#include "core/pass/main_queue_pass.h"
#include "core/pass/stop_choice.h"
#include "core/state/claims.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

static bool may_be_stopped(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    return task->request.takes_turns && task->request.priority <= head->request.priority &&
           task->state == TASK_RUNNING && !task->ending && !task->run->memory_wait.bytes &&
           core_may_suspend(core, task, now_us) && core_slot_end_us(core, task) <= now_us;
}

static bool runs_longer(
    const struct core *core, const struct task *a, const struct task *b, int64_t now_us)
{
    return task_runs_since_us(a) < task_runs_since_us(b);
}

static bool is_turn_before(const void *a, const void *b, const void *context)
{
    const struct task *one = *(struct task *const *)a, *other = *(struct task *const *)b;
    if (one->request.priority != other->request.priority)
        return one->request.priority > other->request.priority;
    return one->run->yield.since_us < other->run->yield.since_us;
}

#define TURNS_MAX 64 /* chosen, to keep a pass short: tasks that are tried in a pass */

static size_t list_turns(const struct core *core, struct task **ret_tasks)
{
    size_t n = 0;
    for (struct task *task = core->suspended_queue.first; task; task = task->next)
        if (core_waits_for_turn(task))
            n = top_k_insert(ret_tasks, n, TURNS_MAX, sizeof task, &task, is_turn_before, NULL);
    return n;
}

bool core_has_turns(const struct core *core)
{
    if (core->n_taking_turns == 0)
        return false;
    for (const struct task *task = core->suspended_queue.first; task; task = task->next)
        if (core_waits_for_turn(task))
            return true;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++)
            if (core_find_task(core, gpu->residents[k].task)->request.takes_turns)
                return true;
    }
    return false;
}

static const struct stop_rule by_slot = {
    may_be_stopped, runs_longer, YIELD_TO_SLOT, .takes_place = true};

static int stop_for(struct core *core, const struct task *next, int64_t now_us)
{
    struct task waiting = core_as_waiting(core, next);
    return core_stop_tasks_for(core, &waiting, &by_slot, now_us);
}

/* After a try to resume it. */
static bool still_waits(const struct core *core, const struct task *task, int64_t now_us)
{
    return task->state == TASK_SUSPENDED && task->run->yield.retry_us <= now_us &&
           core_waits_for_room(core, task, &core->placement);
}

/* Behind a task that waits only until a sample shows what has become free for it: the one that has
 * just given it its turn would take that back. */
static bool may_pass(const struct core *core, const struct task *task, bool any_waits)
{
    return !any_waits || !core_awaits_sample(core, task);
}

int core_schedule_turns(struct core *core, int64_t now_us)
{
    struct task *turns[TURNS_MAX], *next = NULL;
    const struct task *head = core_head_of_queue(core);
    size_t n = list_turns(core, turns), i = 0;
    bool any_waits = false;
    int r = 0;
    for (; i < n && r == 0 && !next && core_is_turn_of(turns[i], head); i++) {
        if (!may_pass(core, turns[i], any_waits))
            continue;
        r = core_try_resume(core, turns[i], true, now_us, &core->placement);
        if (!still_waits(core, turns[i], now_us))
            continue;
        any_waits = true;
        if (!core_keep_for_return(core, turns[i]))
            next = turns[i];
        else if (r == 0)
            r = stop_for(core, turns[i], now_us);
    }
    if (r == 0 && !next) {
        r = core_schedule_main(core, now_us);
        next = core_head_of_queue(core);
    }
    if (r == 0 && next)
        r = stop_for(core, next, now_us);
    for (; i < n && r == 0; i++)
        if (may_pass(core, turns[i], any_waits || next))
            r = core_try_resume(
                core, turns[i], core_is_left_to_stuck(core, turns[i]), now_us, &core->placement);
    return r;
}
