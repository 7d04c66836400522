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
#include <errno.h>
#include <inttypes.h>

#include "base/units.h"
#include "core/core_private.h"

static bool is_waiting(const struct task *task)
{
    return task->state <= TASK_RECOVERING;
}

static bool shortens_time(const struct task *task, const struct task_update *update)
{
    int64_t before_us = task->request.time_limit_us;
    return update->time_limit_us > 0 && (before_us == 0 || update->time_limit_us <= before_us);
}

/* Why the update cannot be applied; NULL: it can. */
static const char *find_hindrance(const struct task *task, const struct task_update *update)
{
    if (task->ending || task->state == TASK_EXITED || task_state_is_done(task->state))
        return "it is ending or has ended";
    if (!is_waiting(task) && (update->sets_need || update->sets_begin || update->sets_after))
        return "it has started: only its time limit, CPUs, main memory, priority and name can be changed";
    if (!is_waiting(task) && update->sets_time_limit && !update->may_raise &&
        !shortens_time(task, update))
        return "it has started: only operators can raise its time limit";
    if (!is_waiting(task) && update->sets_host && !update->may_raise)
        return "it has started: only operators can change its CPUs and main memory";
    if (update->sets_after && !core_may_depend(task->id, update->after, update->n_after))
        return "a task can depend on earlier tasks only";
    return NULL;
}

static struct host_resources changed_host(const struct task *task, const struct task_update *update)
{
    const struct host_resources *before = &task->request.host, *after = &update->host;
    return (struct host_resources){after->cpus ? after->cpus : before->cpus,
        after->memory_bytes ? after->memory_bytes : before->memory_bytes};
}

/* The further part that a task may get: at most what is free. */
static int check_more_host(const struct core *core, const struct task *task,
    const struct task_update *update, struct fault *fault)
{
    struct task more = *task;
    struct host_resources wanted = changed_host(task, update);
    more.request.host.cpus = wanted.cpus - task->request.host.cpus;
    more.request.host.memory_bytes = wanted.memory_bytes - task->request.host.memory_bytes;
    struct verdict verdict = core_check_host(core, &more);
    if (verdict.kind == VERDICT_HOST_CPUS)
        return fault_set(fault, EBUSY,
            "task %" PRIu64 ": %.0f more CPUs are free, it would need %.0f", task->id, verdict.have,
            verdict.limit);
    if (verdict.kind == VERDICT_HOST_MEMORY)
        return fault_set(fault, EBUSY,
            "task %" PRIu64 ": too little main memory is free beside what it has", task->id);
    return 0;
}

int core_check_update(
    const struct core *core, uint64_t id, const struct task_update *update, struct fault *fault)
{
    const struct task *task = core_find_task(core, id);
    const char *hindrance = task ? find_hindrance(task, update) : "it has ended";
    if (hindrance)
        return fault_set(fault, task ? EBUSY : ENOENT, "task %" PRIu64 ": %s", id, hindrance);
    if (update->sets_host && !is_waiting(task)) {
        int r = check_more_host(core, task, update, fault);
        if (r < 0)
            return r;
    }
    if (!update->sets_need && !update->sets_host)
        return 0;
    struct task_request request = task->request;
    request.host = changed_host(task, update);
    request.expect = (struct expectation){0}; /* not changed, and perhaps an estimate */
    if (update->sets_need)
        request.need = update->need;
    return core_check_request(core, &request, fault);
}

static void change_host(struct core *core, struct task *task, const struct task_update *update)
{
    bool is_counted = task_state_has_attempt(task->state);
    if (is_counted)
        core_return_host(core, task);
    task->request.host = changed_host(task, update);
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
    if (find_hindrance(task, update))
        return CORE_NOT_NOW;
    bool is_queued = task->queue && is_waiting(task);
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
