/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides the next call of the driver while the processes of a task are suspended or resumed. The
 * next call follows from the goal and the states alone, so there is no position in a procedure that
 * could be lost:
 *
 *     goal SUSPENDED    ask unknown states; lock each running one; when none runs, checkpoint each
 *     goal RUNNING      ask unknown states; reserve memory for all; restore each; unlock each
 *
 * Two processes, the second is under a profiler:
 *
 *     state A, state B    both running
 *     lock A, lock B      B: 801 (not supported). The goal becomes RUNNING
 *     state B             running
 *     unlock A            UNDONE, error 801
 */
#include "checkpoint/process_group.h"

#include <errno.h>

void process_group_init(struct process_group *group, enum group_goal goal)
{
    *group = (struct process_group){.goal = goal};
}

struct group_process *process_group_add(struct process_group *group, pid_t pid, uint64_t born)
{
    if (group->count == GROUP_PROCESSES_MAX)
        return NULL;
    struct group_process *process = &group->processes[group->count++];
    *process = (struct group_process){.pid = pid, .born = born};
    return process;
}

static bool find_state(
    const struct process_group *group, enum process_state state, size_t *ret_process)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->processes[i].state == state) {
            *ret_process = i;
            return true;
        }
    }
    return false;
}

/* A call for the first process in this state. Returns false when none is. */
static bool call_for(const struct process_group *group, enum process_state state,
    enum helper_call call, struct group_step *ret_step)
{
    *ret_step = (struct group_step){.call = call};
    return find_state(group, state, &ret_step->process);
}

/* A call for the first memory for which `is_due` holds. Returns false when there is none. */
static bool call_for_memory(const struct process_group *group,
    bool (*is_due)(const struct process_group *group, const struct group_process *process,
        const struct group_memory *memory),
    enum helper_call call, struct group_step *ret_step)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct group_process *process = &group->processes[i];
        for (size_t k = 0; k < process->n_memory; k++) {
            if (is_due(group, process, &process->memory[k])) {
                *ret_step = (struct group_step){.call = call, .process = i, .memory = k};
                return true;
            }
        }
    }
    return false;
}

static bool is_missing(const struct process_group *group, const struct group_process *process,
    const struct group_memory *memory)
{
    return process->state == PROCESS_SUSPENDED && !memory->is_reserved;
}

/* No process will be restored now. */
static bool is_over(const struct process_group *group)
{
    size_t i;
    return group->is_broken || group->is_stuck || group->has_no_room ||
           find_state(group, PROCESS_FAILED, &i);
}

/* It is reserved for a process that will not be restored, as it has ended or no other one will be:
 * the helper would hold it for as long as it lives. */
static bool is_useless(const struct process_group *group, const struct group_process *process,
    const struct group_memory *memory)
{
    return memory->is_reserved && (process->state != PROCESS_SUSPENDED || is_over(group));
}

static enum group_answer next_to_suspend(
    const struct process_group *group, struct group_step *ret_step)
{
    if (call_for(group, PROCESS_RUNNING, HELPER_LOCK, ret_step) ||
        call_for(group, PROCESS_LOCKED, HELPER_SUSPEND, ret_step))
        return GROUP_CALL;
    return GROUP_DONE;
}

static enum group_answer next_to_run(const struct process_group *group, struct group_step *ret_step)
{
    if (group->has_no_room)
        return GROUP_NO_ROOM;
    if (call_for_memory(group, is_missing, HELPER_RESERVE, ret_step) ||
        call_for(group, PROCESS_SUSPENDED, HELPER_RESUME, ret_step) ||
        call_for(group, PROCESS_LOCKED, HELPER_UNLOCK, ret_step))
        return GROUP_CALL;
    return group->is_undoing ? GROUP_UNDONE : GROUP_DONE;
}

enum group_answer process_group_next(const struct process_group *group, struct group_step *ret_step)
{
    size_t i;
    *ret_step = (struct group_step){.call = HELPER_CALLS};
    if (call_for_memory(group, is_useless, HELPER_RELEASE, ret_step))
        return GROUP_CALL;
    if (group->is_broken || find_state(group, PROCESS_FAILED, &i))
        return GROUP_BROKEN;
    if (group->is_stuck || group->helper_losses > GROUP_HELPER_TRIES)
        return GROUP_STUCK;
    if (call_for(group, PROCESS_UNKNOWN, HELPER_STATE, ret_step))
        return GROUP_CALL;
    bool is_left = false;
    for (i = 0; i < group->count; i++)
        is_left |= group->processes[i].state != PROCESS_GONE;
    if (!is_left)
        return GROUP_EMPTY;
    return group->goal == GROUP_SUSPENDED ? next_to_suspend(group, ret_step)
                                          : next_to_run(group, ret_step);
}

/* ---- results ---- */

static void forget_reservations(struct group_process *process)
{
    for (size_t i = 0; i < process->n_memory; i++)
        process->memory[i].is_reserved = false;
}

/* A helper's reservations ended with it. The calls that it had made are found by a new query. */
static void take_lost_helper(struct process_group *group, const struct group_step *step)
{
    group->helper_losses++;
    for (size_t i = 0; i < group->count; i++)
        forget_reservations(&group->processes[i]);
    group->processes[step->process].state = PROCESS_UNKNOWN;
}

static void note_error(struct process_group *group, const struct group_step *step, int result)
{
    if (group->error)
        return;
    group->error = result;
    group->error_call = step->call;
    group->error_process = step->process;
}

static void give_up_suspending(struct process_group *group)
{
    if (group->goal == GROUP_SUSPENDED) {
        group->goal = GROUP_RUNNING;
        group->is_undoing = true;
    }
}

static void take_failure(struct process_group *group, const struct group_step *step, int result)
{
    struct group_process *process = &group->processes[step->process];
    note_error(group, step, result);
    switch (step->call) {
    case HELPER_LOCK:
    case HELPER_SUSPEND:
        give_up_suspending(group);
        process->state = PROCESS_UNKNOWN;
        break;
    case HELPER_RESERVE:
        group->has_no_room = true;
        break;
    case HELPER_RELEASE:
        process->memory[step->memory].is_reserved = false;
        break;
    case HELPER_RESUME:
        group->is_broken = true;
        break;
    default: /* the state of the process is unknown, or it does not continue */
        group->is_stuck = true;
        break;
    }
}

static void take_success(
    struct process_group *group, const struct group_step *step, enum process_state state)
{
    struct group_process *process = &group->processes[step->process];
    switch (step->call) {
    case HELPER_STATE:
        process->state = state;
        group->is_stuck |= state == PROCESS_UNKNOWN;
        break;
    case HELPER_LOCK:
        process->state = PROCESS_LOCKED;
        break;
    case HELPER_SUSPEND:
        process->state = PROCESS_SUSPENDED;
        break;
    case HELPER_RESERVE:
        process->memory[step->memory].is_reserved = true;
        break;
    case HELPER_RELEASE: /* all reservations for the process */
        forget_reservations(process);
        break;
    case HELPER_RESUME:
        process->state = PROCESS_LOCKED;
        forget_reservations(process);
        break;
    default:
        process->state = PROCESS_RUNNING;
        break;
    }
}

void process_group_take(struct process_group *group, const struct group_step *step, int result,
    enum process_state state)
{
    group->was_touched |= step->call != HELPER_STATE;
    if (result == -ESRCH) {
        group->processes[step->process].state = PROCESS_GONE;
    } else if (result == -EPIPE || result == -ETIMEDOUT) {
        if (result == -ETIMEDOUT && (step->call == HELPER_LOCK || step->call == HELPER_SUSPEND)) {
            note_error(group, step, result);
            give_up_suspending(group);
        }
        take_lost_helper(group, step);
    } else if (result != 0) {
        take_failure(group, step, result);
    } else {
        take_success(group, step, state);
    }
}
