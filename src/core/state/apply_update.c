/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the request of a task: `colloc update`.
 *
 * A waiting task leaves its queue and enters a queue again: with another priority at another place,
 * with a begin or dependencies among the blocked tasks. Its age does not change.
 *
 *     t=0   submit a; submit b; submit c           c waits behind b
 *     t=5   update c priority=high                 b waits behind c
 *     t=9   update c begin=60                      c is blocked until t=60, and b is next
 *
 * A task that has started keeps the options of its processes. Its owner can shorten its time limit;
 * operators can also raise it, and change its CPUs and main memory; more is granted only as far as
 * it is free.
 */
#include "core/state/apply_update.h"

#include "core/state/claims.h"
#include "core/state/dependents.h"
#include "core/state/fifo_marks.h"
#include "core/state/residents.h"
#include "core/state/state.h"
#include "core/state/task_attempt.h"
#include "core/state/waiting.h"

bool core_awaits_start(const struct task *task)
{
    return task->state <= TASK_RECOVERING;
}

static bool shortens_time(const struct task *task, const struct task_update *update)
{
    int64_t before_us = task->request.time_limit_us;
    return update->time_limit_us > 0 && (before_us == 0 || update->time_limit_us <= before_us);
}

const char *core_update_hindrance(const struct task *task, const struct task_update *update)
{
    if (task->ending || task->state == TASK_EXITED || task_state_is_done(task->state))
        return "it is ending or has ended";
    if (!core_awaits_start(task) && (update->sets_need || update->sets_begin || update->sets_after))
        return "it has started: only its time limit, CPUs, main memory, priority and name can be changed";
    if (!core_awaits_start(task) && update->sets_time_limit && !update->may_raise &&
        !shortens_time(task, update))
        return "it has started: only operators can raise its time limit";
    if (!core_awaits_start(task) && update->sets_host && !update->may_raise)
        return "it has started: only operators can change its CPUs and main memory";
    if (update->sets_after && !core_may_depend(task->id, update->after, update->n_after))
        return "a task can depend on earlier tasks only";
    return NULL;
}

struct host_resources core_changed_host(const struct task *task, const struct task_update *update)
{
    const struct host_resources *before = &task->request.host, *after = &update->host;
    return (struct host_resources){after->cpus ? after->cpus : before->cpus,
        after->memory_bytes ? after->memory_bytes : before->memory_bytes};
}

static void change_host(struct core *core, struct task *task, const struct task_update *update)
{
    bool is_counted = task_state_has_attempt(task->state);
    if (is_counted)
        core_return_host(core, task);
    task->request.host = core_changed_host(task, update);
    if (is_counted)
        core_take_host(core, task);
}

static int set_request(struct core *core, struct task *task, const struct task_update *update)
{
    if (update->sets_time_limit)
        task->request.time_limit_us = update->time_limit_us;
    core->any_time_limit |= task->request.time_limit_us > 0;
    if (update->sets_host)
        change_host(core, task, update);
    if (update->sets_priority)
        task->request.priority = update->priority;
    if (update->sets_need)
        task->request.need = update->need;
    if (update->sets_begin)
        task->request.begin_us = update->begin_us;
    if (!update->sets_after)
        return 0;
    core_drop_dependencies(core, task);
    task->request.after = update->after;
    task->request.n_after = update->n_after;
    return core_take_dependencies(core, task, 0);
}

int core_apply_update(struct core *core, struct task *task, const struct event *event)
{
    const struct task_update *update = &event->update;
    if (core_update_hindrance(task, update))
        return CORE_NOT_NOW;
    bool is_queued = task->queue && core_awaits_start(task);
    struct task_queue *other_queue = is_queued ? NULL : task->queue; /* of suspended tasks */
    if (is_queued)
        core_leave_queue(core, task, event->time_us);
    else if (other_queue)
        queue_remove(task);
    if (update->sets_begin || update->sets_after)
        core_leave_fifo(core, task);
    int r = set_request(core, task, update);
    core_note_time_limit(core, task, event->time_us);
    if ((task->n_gpus && update->sets_time_limit) || task->id == core->reserved_for)
        core_release_reservation(core); /* other GPUs may admit the head first now */
    if (is_queued && r == 0)
        core_enter_queue(core, task, event->time_us);
    else if (other_queue)
        queue_push_in_order(other_queue, task);
    return r;
}
