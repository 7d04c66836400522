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
 * dependents.c judges dependencies. The decision is in the log of the task that waits: a replay
 * needs no events of tasks that have long ended.
 *
 * Of 10,000 blocked tasks a step examines only those that something has happened to: an opening
 * names a task that became blocked or lost its last dependency, or an array of which a task has
 * left the queues. All are examined when one may begin, a user's limit has room again, or the
 * settings have changed.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "core/core_private.h"

/* ---- a blocked task ---- */

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

/* ---- letting tasks into their queue ---- */

/* In a queue to be placed or resumed, or running. */
static bool is_at_work(const struct task *task)
{
    return task->state != TASK_HELD && task->state != TASK_BLOCKED &&
           !task_state_is_done(task->state);
}

static bool has_user_limits(const struct core *core)
{
    const struct core_settings *settings = &core->settings;
    return settings->user_tasks_max || settings->user_gpus_max || settings->user_memory_max_bytes;
}

/* A task that was not at work had no place. */
void core_leave_slot(struct core *core, const struct task *task)
{
    if (!is_at_work(task) || !core->blocked_queue.first)
        return;
    if (task->request.limited && has_user_limits(core))
        core->is_gate_open = true;
    else if (task->array.limit > 0)
        open_gate(core, task->array.id, true);
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

/* Lets the task into its queue, if it may enter it. Returns 0 or -ENOMEM. */
static int admit(struct core *core, struct task *task, struct array_use *array, int64_t now_us)
{
    int r = examine(core, task, array, now_us);
    if (r <= 0)
        return r;
    struct event event = {.kind = EVENT_ELIGIBLE, .time_us = now_us, .task = task->id};
    core->pass_needed = true;
    return core_decide(core, &event);
}

static int admit_all(struct core *core, int64_t now_us)
{
    struct array_use array = {.array = 0};
    int r = 0;
    core->is_gate_open = false;
    core->next_begin_us = TIME_NEVER;
    for (struct task *task = core->blocked_queue.first, *next; task && r == 0; task = next) {
        next = task->next;
        r = admit(core, task, &array, now_us);
    }
    return r;
}

/* A task, or the tasks of an array until its limit is reached. */
static int admit_opened(
    struct core *core, const struct opening *opening, struct array_use *array, int64_t now_us)
{
    int r = 0;
    for (int i = core_task_position(core, opening->id); i < core->n_tasks && r == 0; i++) {
        struct task *task = core->tasks[i];
        if ((opening->is_array ? task->array.id : task->id) != opening->id)
            break;
        if (task->state == TASK_BLOCKED)
            r = admit(core, task, array, now_us);
        if (task->state == TASK_BLOCKED && task->gate == GATE_ARRAY)
            break;
    }
    return r;
}

static int by_id(const void *a, const void *b)
{
    uint64_t one = ((const struct opening *)a)->id, other = ((const struct opening *)b)->id;
    return (one > other) - (one < other);
}

/* The oldest first: they may want the same slot. */
static int admit_openings(struct core *core, int64_t now_us)
{
    struct array_use array = {.array = 0};
    int r = 0;
    if (core->openings.n > 1)
        qsort(core->openings.list, core->openings.n, sizeof *core->openings.list, by_id);
    for (size_t i = 0; i < core->openings.n && r == 0; i++)
        r = admit_opened(core, &core->openings.list[i], &array, now_us);
    return r;
}

int core_admit_eligible(struct core *core, int64_t now_us)
{
    bool all = core->is_gate_open || now_us >= core->next_begin_us;
    if (!all && core->openings.n == 0)
        return 0;
    int r = core->blocked_queue.first ? count_users(core) : 0;
    if (r == 0)
        r = all ? admit_all(core, now_us) : admit_openings(core, now_us);
    core->openings.n = 0;
    return r;
}
