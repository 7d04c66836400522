/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tasks may start at all. A task with a begin time or dependencies, or of an array with a
 * limit of tasks at a time, is BLOCKED: it waits in a separate queue, where it delays no other
 * task, until nothing but its turn keeps it from starting. Then the core decides ELIGIBLE, and the
 * task goes into the queue that it would have been in.
 *
 *     t=0   submit a; submit b after=ok:a; submit c after=ok:b      a starts, b and c are blocked
 *     t=9   a completes    DEPENDENCY b: ok:a holds                 ELIGIBLE b: it starts
 *     t=12  b fails        DEPENDENCY c: ok:b never                 END c, cancelled
 *
 * A dependency is on tasks with smaller ids only, so there is no cycle, and one pass over the tasks
 * by rising id also sees those that end because a dependency of theirs broke. The decision is in
 * the log of the task that waits: a replay needs no events of tasks that have long ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/core_private.h"

/* ---- a task's dependencies ---- */

bool core_is_gated(const struct task *task)
{
    return task->request.begin_us > 0 || task->n_after > 0 || task->array.limit > 0;
}

bool core_may_depend(const struct event *event)
{
    const struct task_request *request = &event->submit.request;
    for (int i = 0; i < request->n_after; i++) {
        const struct dependency *each = &request->after[i];
        if (each->first == 0 || each->first > each->last || each->last >= event->task)
            return false;
    }
    return request->n_after >= 0 && request->n_after <= DEPENDENCIES_MAX;
}

/* The dependency of the task at this place of its array, from 1, on the one of another array. */
static struct dependency one_of_range(const struct dependency *range, uint64_t place)
{
    uint64_t id = range->first + (place > 0 ? place - 1 : 0);
    id = id < range->last ? id : range->last;
    return (struct dependency){range->kind, id, id, false};
}

int core_take_dependencies(struct core *core, struct task *task, uint64_t place)
{
    size_t size = (size_t)task->request.n_after * sizeof *task->after;
    task->after = size ? malloc(size) : NULL;
    if (size && !task->after)
        return -ENOMEM;
    if (size) {
        memcpy(task->after, task->request.after, size);
        core->n_dependents++;
    }
    task->n_after = task->request.n_after;
    for (int i = 0; i < task->n_after; i++)
        if (task->after[i].each)
            task->after[i] = one_of_range(&task->after[i], place);
    task->request.after = NULL;
    task->request.n_after = 0;
    return 0;
}

void core_drop_dependencies(struct core *core, struct task *task)
{
    core->n_dependents -= task->n_after > 0;
    task->n_after = 0;
    free(task->after);
    task->after = NULL;
}

static void remove_dependency(struct core *core, struct task *task, int i)
{
    if (task->n_after == 1) {
        core_drop_dependencies(core, task);
        return;
    }
    task->n_after--;
    memmove(
        &task->after[i], &task->after[i + 1], (size_t)(task->n_after - i) * sizeof *task->after);
}

int core_apply_dependency(struct core *core, struct task *task, const struct event *event)
{
    int i = 0;
    while (i < task->n_after && !dependency_is_same(&task->after[i], &event->dependency.dependency))
        i++;
    if (i == task->n_after || task->ending)
        return CORE_NOT_NOW;
    remove_dependency(core, task, i);
    core->is_gate_open = true;
    if (event->dependency.holds)
        return 0;
    task->ending = FAILURE_DEPENDENCY;
    task->broken = event->dependency;
    return 0;
}

/* ---- judging them ---- */

void core_note_end(struct core *core, uint64_t id)
{
    core->ended_low = core->ended_low && core->ended_low < id ? core->ended_low : id;
    core->ended_high = core->ended_high > id ? core->ended_high : id;
}

/* What the ends of the tasks in its range say of a dependency. It waits if none of them is known:
 * then the driver reports what they came to. */
struct judgement {
    struct dependency dependency;
    enum dependency_answer answer;
    uint64_t by;
};

static struct judgement judge(const struct core *core, const struct dependency *dependency)
{
    struct judgement judgement = {.dependency = *dependency};
    int64_t n_live = 0, n_failed = 0;
    bool is_known = false;
    for (int i = core_task_position(core, dependency->first); i < core->n_tasks; i++) {
        const struct task *task = core->tasks[i];
        if (task->id > dependency->last)
            break;
        is_known = true;
        bool is_done = task_state_is_done(task->state);
        bool failed = is_done && task->state != TASK_COMPLETED;
        n_live += !is_done;
        if (failed ? n_failed++ == 0 : is_done && n_failed == 0)
            judgement.by = task->id;
    }
    if (is_known)
        judgement.answer = dependency_judge(dependency->kind, n_live, n_failed);
    return judgement;
}

static bool has_news(const struct core *core, const struct dependency *dependency)
{
    return dependency->first <= core->ended_high && dependency->last >= core->ended_low;
}

/* Finds a dependency of the task that is decided. `is_new`: none was judged yet. `last`: the
 * judgement before; tasks of an array have the same dependencies. */
static bool find_decided(
    const struct core *core, const struct task *task, bool is_new, struct judgement *last)
{
    for (int i = 0; i < task->n_after; i++) {
        const struct dependency *each = &task->after[i];
        if (!is_new && !has_news(core, each))
            continue;
        if (!dependency_is_same(each, &last->dependency))
            *last = judge(core, each);
        if (last->answer != DEPENDENCY_WAITS)
            return true;
    }
    return false;
}

static int decide_dependency(
    struct core *core, const struct task *task, const struct judgement *judgement, int64_t now_us)
{
    struct event event = {.kind = EVENT_DEPENDENCY,
        .time_us = now_us,
        .task = task->id,
        .dependency = {
            judgement->dependency, judgement->answer == DEPENDENCY_HOLDS, judgement->by}};
    int r = core_decide(core, &event);
    return r == 0 && task->ending ? core_end_task(core, task->id, TASK_CANCELLED, now_us) : r;
}

/* Judges dependencies of the tasks from the id on, by rising id. */
static int judge_from(struct core *core, uint64_t id, bool are_new, int64_t now_us)
{
    struct judgement last = {.dependency.first = 0};
    int r = 0;
    for (int i = core_task_position(core, id);
         i < core->n_tasks && core->n_dependents > 0 && r == 0; i++)
        while (r == 0 && find_decided(core, core->tasks[i], are_new, &last))
            r = decide_dependency(core, core->tasks[i], &last, now_us);
    return r;
}

int core_judge_submitted(struct core *core, uint64_t id, int64_t now_us)
{
    return judge_from(core, id, true, now_us);
}

int core_judge_dependencies(struct core *core, int64_t now_us)
{
    int r = core->ended_low ? judge_from(core, core->ended_low, false, now_us) : 0;
    core->ended_low = core->ended_high = 0;
    return r;
}

/* ---- letting tasks into their queue ---- */

void core_note_blocked(struct core *core, const struct task *task)
{
    if (task->n_after == 0 && task->request.begin_us < core->next_begin_us)
        core->next_begin_us = task->request.begin_us;
}

void core_leave_array_slot(struct core *core, const struct task *task)
{
    core->is_gate_open |= task->array.limit > 0;
}

/* How many tasks of an array are in the queues or run. */
struct array_use {
    uint64_t array;
    int n;
};

static int count_array(const struct core *core, uint64_t array)
{
    int n = 0;
    for (int i = core_task_position(core, array + 1); i < core->n_tasks; i++) {
        const struct task *task = core->tasks[i];
        if (task->array.id != array)
            break;
        n += task->state != TASK_HELD && task->state != TASK_BLOCKED &&
             !task_state_is_done(task->state);
    }
    return n;
}

/* Takes a place in the limit of the task's array. `use`: of the array before; its tasks follow one
 * another in the queue. */
static bool take_array_slot(const struct core *core, const struct task *task, struct array_use *use)
{
    if (task->array.limit == 0)
        return true;
    if (use->array != task->array.id)
        *use = (struct array_use){task->array.id, count_array(core, task->array.id)};
    return use->n < task->array.limit && ++use->n;
}

static bool is_eligible(
    struct core *core, const struct task *task, struct array_use *use, int64_t now_us)
{
    if (task->n_after > 0)
        return false;
    if (task->request.begin_us <= now_us)
        return take_array_slot(core, task, use);
    if (task->request.begin_us < core->next_begin_us)
        core->next_begin_us = task->request.begin_us;
    return false;
}

int core_admit_eligible(struct core *core, int64_t now_us)
{
    struct array_use use = {.array = 0};
    int r = 0;
    if (!core->is_gate_open && now_us < core->next_begin_us)
        return 0;
    core->is_gate_open = false;
    core->next_begin_us = TIME_NEVER;
    for (struct task *task = core->blocked_queue.first, *next; task && r == 0; task = next) {
        next = task->next;
        if (!is_eligible(core, task, &use, now_us))
            continue;
        struct event event = {.kind = EVENT_ELIGIBLE, .time_us = now_us, .task = task->id};
        core->pass_needed = true;
        r = core_decide(core, &event);
    }
    return r;
}
