/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tasks may start at all. A task with a begin time or dependencies, or of an array or user
 * with a limit of tasks at a time, is BLOCKED: it waits in a separate queue, where it delays no
 * other task, until nothing but its turn keeps it from starting. Then the core decides ELIGIBLE,
 * and the task goes into the queue that it would have been in.
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

#include "base/array.h"
#include "base/clock.h"
#include "core/core_private.h"

/* ---- a task's dependencies ---- */

bool core_is_gated(const struct task *task)
{
    return task->request.begin_us > 0 || task->n_after > 0 || task->array.limit > 0 ||
           task->request.limited;
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

/* Returns how many of the noted ends are before the id. */
static size_t ends_before(const struct core *core, uint64_t id)
{
    size_t low = 0, high = core->ended.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->ended.ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int core_note_end(struct core *core, uint64_t id)
{
    if (core->n_dependents == 0)
        return 0;
    if (ARRAY_RESERVE(core->ended.ids, core->ended.capacity, core->ended.n + 1) < 0)
        return -ENOMEM;
    uint64_t *at = core->ended.ids + ends_before(core, id);
    memmove(at + 1, at, (size_t)(core->ended.ids + core->ended.n - at) * sizeof *at);
    *at = id;
    core->ended.n++;
    return 0;
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

/* Has a task of its range ended? To ask that is cheap; to judge it, each task is found. */
static bool has_news(const struct core *core, const struct dependency *dependency)
{
    size_t i = ends_before(core, dependency->first);
    return i < core->ended.n && core->ended.ids[i] <= dependency->last;
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
    int r = core->ended.n > 0 ? judge_from(core, core->ended.ids[0], false, now_us) : 0;
    core->ended.n = 0;
    return r;
}

/* ---- letting tasks into their queue ---- */

void core_note_blocked(struct core *core, const struct task *task)
{
    if (task->n_after == 0 && task->request.begin_us < core->next_begin_us)
        core->next_begin_us = task->request.begin_us;
}

/* In a queue to be placed or resumed, or running. */
static bool is_at_work(const struct task *task)
{
    return task->state != TASK_HELD && task->state != TASK_BLOCKED &&
           !task_state_is_done(task->state);
}

/* A task that was not at work had no place: to cancel an array costs no walk for each of them. */
void core_leave_slot(struct core *core, const struct task *task)
{
    bool is_counted = task->array.limit > 0 || task->request.limited;
    core->is_gate_open |= is_counted && is_at_work(task);
}

/* How many tasks of an array are at work. */
struct array_use {
    uint64_t array;
    int n;
};

static int count_array(const struct core *core, uint64_t array)
{
    int n = 0;
    for (int i = core_task_position(core, array + 1); i < core->n_tasks; i++) {
        if (core->tasks[i]->array.id != array)
            break;
        n += is_at_work(core->tasks[i]);
    }
    return n;
}

/* What the limited tasks of a user that are at work have or will have. */
struct user_use {
    uint32_t uid;
    int tasks, gpus;
    int64_t bytes;
};

/* NULL without memory. */
static struct user_use *find_user(struct core *core, uint32_t uid)
{
    for (size_t i = 0; i < core->n_user_uses; i++)
        if (core->user_uses[i].uid == uid)
            return &core->user_uses[i];
    const struct user_use new_user = {.uid = uid};
    return ARRAY_APPEND(core->user_uses, core->n_user_uses, core->user_uses_capacity, new_user) < 0
               ? NULL
               : &core->user_uses[core->n_user_uses - 1];
}

/* An unknown requirement counts as what policies want free for it. */
static int64_t total_bytes(const struct core *core, const struct task *task)
{
    const struct need *need = &task->request.need;
    int64_t each = need->kind >= NEED_ESTIMATED ? need->bytes
                                                : core->settings.conditions.min_free_bytes;
    return each > INT64_MAX / 2 / task->request.gpus ? INT64_MAX / 2 : each * task->request.gpus;
}

static void add_use(const struct core *core, struct user_use *use, const struct task *task)
{
    int64_t bytes = total_bytes(core, task);
    use->tasks++;
    use->gpus += task->request.gpus;
    use->bytes = use->bytes > INT64_MAX - bytes ? INT64_MAX : use->bytes + bytes;
}

static bool has_user_limits(const struct core *core)
{
    const struct core_settings *settings = &core->settings;
    return settings->user_tasks_max || settings->user_gpus_max || settings->user_memory_max_bytes;
}

static int count_users(struct core *core)
{
    core->n_user_uses = 0;
    for (int i = 0; i < core->n_tasks && has_user_limits(core); i++) {
        const struct task *task = core->tasks[i];
        struct user_use *use = NULL;
        if (!task->request.limited || !is_at_work(task))
            continue;
        use = find_user(core, task->uid);
        if (!use)
            return -ENOMEM;
        add_use(core, use, task);
    }
    return 0;
}

/* The limit of its user that the task would exceed. */
static enum task_gate user_gate(
    const struct core *core, const struct user_use *use, const struct task *task)
{
    const struct core_settings *settings = &core->settings;
    int64_t bytes = total_bytes(core, task);
    if (settings->user_tasks_max && use->tasks >= settings->user_tasks_max)
        return GATE_USER_TASKS;
    if (settings->user_gpus_max && use->gpus + task->request.gpus > settings->user_gpus_max)
        return GATE_USER_GPUS;
    if (settings->user_memory_max_bytes && use->bytes > settings->user_memory_max_bytes - bytes)
        return GATE_USER_MEMORY;
    return GATE_NONE;
}

/* Takes a place in the limits of the task's array and user. `array`: of the array before; its tasks
 * follow one another in the queue. Returns GATE_NONE, or what keeps the task; -ENOMEM. */
static int take_slot(struct core *core, const struct task *task, struct array_use *array)
{
    struct user_use *use = NULL;
    if (task->request.limited && has_user_limits(core)) {
        use = find_user(core, task->uid);
        if (!use)
            return -ENOMEM;
        enum task_gate gate = user_gate(core, use, task);
        if (gate)
            return (int)gate;
    }
    if (task->array.limit && array->array != task->array.id)
        *array = (struct array_use){task->array.id, count_array(core, task->array.id)};
    if (task->array.limit && array->n >= task->array.limit)
        return GATE_ARRAY;
    array->n += task->array.limit > 0;
    if (use)
        add_use(core, use, task);
    return GATE_NONE;
}

/* Returns 1 if the task may enter its queue, 0 if not, or -ENOMEM. */
static int examine(struct core *core, struct task *task, struct array_use *array, int64_t now_us)
{
    if (task->n_after > 0)
        return 0;
    if (task->request.begin_us > now_us) {
        if (task->request.begin_us < core->next_begin_us)
            core->next_begin_us = task->request.begin_us;
        return 0;
    }
    int gate = take_slot(core, task, array);
    task->gate = gate > 0 ? (enum task_gate)gate : GATE_NONE;
    return gate < 0 ? gate : gate == GATE_NONE;
}

int core_admit_eligible(struct core *core, int64_t now_us)
{
    struct array_use array = {.array = 0};
    if (!core->is_gate_open && now_us < core->next_begin_us)
        return 0;
    core->is_gate_open = false;
    core->next_begin_us = TIME_NEVER;
    int r = core->blocked_queue.first ? count_users(core) : 0;
    for (struct task *task = core->blocked_queue.first, *next; task && r >= 0; task = next) {
        next = task->next;
        r = examine(core, task, &array, now_us);
        if (r <= 0)
            continue;
        struct event event = {.kind = EVENT_ELIGIBLE, .time_us = now_us, .task = task->id};
        core->pass_needed = true;
        r = core_decide(core, &event);
    }
    return r < 0 ? r : 0;
}
