/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that has to wait is in exactly one queue: blocked until it may start at all, recovering
 * after it ran out of GPU memory, or in the main queue; with ORDER_FAIR that consists of one queue
 * for each user. A task that needs no GPU has its own queue (pass/host_pass.c). A suspended task
 * waits in a queue too (apply_yield.c).
 *
 * Of 10,000 blocked tasks a step examines only those whose state may have changed. What may let one
 * into its queue leaves an opening here: a task that became blocked or lost its last dependency, or
 * an array of which a task has left the queues. The gate is open when all have to be examined: a
 * user may be below a limit again, or there was no memory for the opening. decide/eligibility.c
 * examines them.
 */
#include "core/state/waiting.h"

#include "base/array.h"
#include "core/state/claims.h"
#include "core/state/fifo_marks.h"
#include "core/state/state.h"
#include "core/state/users.h"

/* ---- the gate ---- */

bool core_is_gated(const struct task *task)
{
    return task->request.begin_us > 0 || task->n_after > 0 || task->array.limit > 0 ||
           task->request.limited;
}

/* Without memory for the opening, all blocked tasks are examined. */
static void open_gate(struct core *core, uint64_t id, bool is_array)
{
    const struct opening opening = {id, is_array};
    if (core->is_gate_open)
        return;
    core->is_gate_open = ARRAY_APPEND(core->openings.list, core->openings.n,
                             core->openings.capacity, opening) < 0;
}

void core_note_blocked(struct core *core, const struct task *task, int64_t now_us)
{
    if (task->state != TASK_BLOCKED || task->n_after > 0)
        return;
    if (task->request.begin_us <= now_us)
        open_gate(core, task->id, false);
    else if (task->request.begin_us < core->next_begin_us)
        core->next_begin_us = task->request.begin_us;
}

bool core_is_at_work(const struct task *task)
{
    return task->state != TASK_HELD && task->state != TASK_BLOCKED &&
           !task_state_is_done(task->state);
}

static bool has_limits(const struct use_limits *limits)
{
    return limits->tasks || limits->gpus || limits->memory_bytes || limits->usage_us;
}

bool core_has_user_limits(const struct core *core)
{
    return has_limits(&core->settings.user_limits) || has_limits(&core->settings.project_limits);
}

/* A task that was not active had no place. */
void core_leave_slot(struct core *core, const struct task *task)
{
    if (!core_is_at_work(task) || !core->blocked_queue.first)
        return;
    if (task->request.limited && core_has_user_limits(core))
        core->is_gate_open = true;
    else if (task->array.limit > 0)
        open_gate(core, task->array.id, true);
}

/* ---- the queues ---- */

/* The queue of the main queue in which the task waits, or would. */
static struct task_queue *core_queue_of(struct core *core, const struct task *task)
{
    if (task->request.gpus == 0)
        return &core->host_queue;
    if (core->settings.order == ORDER_FIFO)
        return &core->main_queue;
    return &core_find_user(core, task->uid)->queue;
}

void core_start_waiting(struct core *core, struct task *task, int64_t now_us)
{
    struct task_queue *queue = task->state == TASK_BLOCKED      ? &core->blocked_queue
                               : task->state == TASK_RECOVERING ? &core->recovery_queue
                                                                : core_queue_of(core, task);
    queue_push_in_order(queue, task);
    core_note_blocked(core, task, now_us);
    core_note_arrival(core, task);
    task->queued_us = now_us;
}

void core_stop_waiting(struct task *task, int64_t now_us)
{
    task->waited_us += now_us - task->queued_us;
    if (task->queue)
        queue_remove(task);
}

void core_return_to_queue(struct core *core, struct task *task, int64_t now_us)
{
    bool recovers = task->oom_count > 0 && task->request.gpus > 0;
    task_move(task, recovers ? TASK_RECOVERING : TASK_QUEUED);
    core_start_waiting(core, task, now_us);
}

void core_leave_queue(struct core *core, struct task *task, int64_t now_us)
{
    core_stop_waiting(task, now_us);
    task->queued_us = now_us;
    core_forget_drains(core, task->id);
    core_leave_slot(core, task);
    task_move(task, TASK_HELD);
}

/* A service that is run again after a pause has no place of its array or user meanwhile. */
void core_block_task(struct core *core, struct task *task, int64_t now_us)
{
    core_leave_slot(core, task);
    task_move(task, TASK_BLOCKED);
    core_start_waiting(core, task, now_us);
}

void core_enter_queue(struct core *core, struct task *task, int64_t now_us)
{
    core_stop_waiting(task, now_us);
    if (!core_is_gated(task)) {
        core_return_to_queue(core, task, now_us);
        return;
    }
    core_block_task(core, task, now_us);
}

/* Tasks are in the order of their ids: each goes to the end of its queue. */
void core_change_order(struct core *core, enum queue_order order)
{
    if (core->settings.order == order)
        return;
    for (int i = 0; i < core->n_tasks; i++)
        if (core->tasks[i]->state == TASK_QUEUED)
            queue_remove(core->tasks[i]);
    core->settings.order = order;
    core->users->change++;
    for (int i = 0; i < core->n_tasks; i++)
        if (core->tasks[i]->state == TASK_QUEUED)
            queue_push_in_order(core_queue_of(core, core->tasks[i]), core->tasks[i]);
}
