/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tasks may start at all. A task with a begin time or dependencies, or of an array or user
 * with a limit of tasks at a time, is BLOCKED: it waits in a separate queue, where it delays no
 * other task, until it only has to wait for its turn. Then the core decides ELIGIBLE, and the task
 * enters its normal queue.
 *
 *     t=0   submit a; submit b after=ok:a; submit c after=ok:b      a starts, b and c are blocked
 *     t=9   a completes    DEPENDENCY b: ok:a holds                 ELIGIBLE b: it starts
 *     t=12  b fails        DEPENDENCY c: ok:b never                 END c, cancelled
 *
 * decide/dependency_judge.c judges dependencies. The decision is in the log of the task that waits:
 * a replay needs no events of tasks that have long ended.
 *
 * A step examines the tasks that have an opening (state/waiting.c): mostly none. All are examined
 * when one may begin, when a user is below a limit again, or when the settings have changed.
 */
#include "core/decide/eligibility.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "core/ask/standing.h"
#include "core/decide/effects.h"
#include "core/state/state.h"
#include "core/state/tasks.h"
#include "core/state/users.h"
#include "core/state/waiting.h"

static int count_array(const struct core *core, uint64_t array)
{
    int n = 0;
    for (int i = core_task_position(core, array + 1); i < core->n_tasks; i++) {
        if (core->tasks[i]->array.id != array)
            break;
        n += core_is_at_work(core->tasks[i]);
    }
    return n;
}

/* ---- limits of users and projects ---- */

/* What the limited tasks of a user or a project that are at work have or will have. */
struct group_use {
    bool is_project;
    uint32_t id; /* uid, or number of the project */
    int tasks, gpus;
    int64_t bytes;
    bool has_usage;   /* what follows is set */
    bool used_up;     /* its limit of GPU time is reached, */
    int64_t until_us; /* until then, or for long enough to examine it again */
};

/* Returns its position in core->group_uses; -ENOMEM. */
static int find_group(struct core *core, bool is_project, uint32_t id)
{
    for (size_t i = 0; i < core->n_group_uses; i++)
        if (core->group_uses[i].is_project == is_project && core->group_uses[i].id == id)
            return (int)i;
    const struct group_use use = {.is_project = is_project, .id = id};
    return ARRAY_APPEND(core->group_uses, core->n_group_uses, core->group_uses_capacity, use) < 0
               ? -ENOMEM
               : (int)core->n_group_uses - 1;
}

/* The user of the task, and its project. Returns how many there are: users of the project "default"
 * have none that is limited; -ENOMEM. */
static int find_groups(struct core *core, const struct task *task, int ret_groups[2])
{
    int project = core_find_user(core, task->uid)->fair.project;
    ret_groups[0] = find_group(core, false, task->uid);
    if (ret_groups[0] < 0 || project == 0)
        return ret_groups[0] < 0 ? -ENOMEM : 1;
    ret_groups[1] = find_group(core, true, (uint32_t)project);
    return ret_groups[1] < 0 ? -ENOMEM : 2;
}

/* An unknown requirement counts as what policies want free for it. */
static int64_t total_bytes(const struct core *core, const struct task *task)
{
    const struct need *need = &task->request.need;
    if (task->request.gpus == 0)
        return 0;
    int64_t each = need->kind >= NEED_ESTIMATED ? need->bytes
                                                : core->settings.conditions.min_free_bytes;
    return each > INT64_MAX / 2 / task->request.gpus ? INT64_MAX / 2 : each * task->request.gpus;
}

static int add_use(struct core *core, const struct task *task)
{
    int64_t bytes = total_bytes(core, task);
    int groups[2], n = find_groups(core, task, groups);
    for (int i = 0; i < n; i++) {
        struct group_use *use = &core->group_uses[groups[i]];
        use->tasks++;
        use->gpus += task->request.gpus;
        use->bytes = use->bytes > INT64_MAX - bytes ? INT64_MAX : use->bytes + bytes;
    }
    return n < 0 ? n : 0;
}

static int count_uses(struct core *core)
{
    int r = 0;
    core->n_group_uses = 0;
    for (int i = 0; i < core->n_tasks && core_has_user_limits(core) && r == 0; i++)
        if (core->tasks[i]->request.limited && core_is_at_work(core->tasks[i]))
            r = add_use(core, core->tasks[i]);
    return r;
}

static const struct use_limits *limits_of(const struct core *core, const struct group_use *use)
{
    return use->is_project ? &core->settings.project_limits : &core->settings.user_limits;
}

#define USAGE_CHECK_US (60 * SECOND_US) /* chosen */

/* Once for all tasks of the group. Usage decays slowly; of a window it is known until when. */
static void note_usage(const struct core *core, struct group_use *use, int64_t now_us)
{
    int64_t limit_us = limits_of(core, use)->usage_us;
    if (limit_us == 0 || use->has_usage)
        return;
    use->has_usage = true;
    use->used_up = core_usage_of(core, use->is_project, use->id, now_us) >= limit_us;
    use->until_us = now_us + USAGE_CHECK_US;
    if (use->used_up && core->settings.usage_window_us)
        use->until_us = core_usage_falls_below(core, use->is_project, use->id, limit_us, now_us);
}

/* The first limit that the group would exceed with the task; GATE_NONE: none. */
static enum task_gate group_gate(
    const struct core *core, const struct group_use *use, const struct task *task)
{
    const struct use_limits *limits = limits_of(core, use);
    bool exceeded[] = {limits->tasks && use->tasks >= limits->tasks,
        limits->gpus && use->gpus + task->request.gpus > limits->gpus,
        limits->memory_bytes && use->bytes > limits->memory_bytes - total_bytes(core, task),
        use->used_up};
    int first = use->is_project ? GATE_PROJECT_TASKS : GATE_USER_TASKS;
    for (size_t i = 0; i < ARRAY_SIZE(exceeded); i++)
        if (exceeded[i])
            return (enum task_gate)(first + (int)i);
    return GATE_NONE;
}

/* Number of active tasks of an array. */
struct array_use {
    uint64_t array;
    int n;
};

/* Takes a place in the limits of the task's array, user and project. `array`: of the array before;
 * its tasks follow one another in the queue. Returns GATE_NONE, or what keeps the task; -ENOMEM. */
static int take_slot(
    struct core *core, const struct task *task, struct array_use *array, int64_t now_us)
{
    bool is_limited = task->request.limited && core_has_user_limits(core);
    int groups[2], n = is_limited ? find_groups(core, task, groups) : 0;
    for (int i = 0; i < n; i++) {
        struct group_use *use = &core->group_uses[groups[i]];
        note_usage(core, use, now_us);
        enum task_gate gate = group_gate(core, use, task);
        if (gate == GATE_USER_USAGE || gate == GATE_PROJECT_USAGE)
            core->next_begin_us = use->until_us < core->next_begin_us ? use->until_us
                                                                      : core->next_begin_us;
        if (gate)
            return (int)gate;
    }
    if (task->array.limit && array->array != task->array.id)
        *array = (struct array_use){task->array.id, count_array(core, task->array.id)};
    if (n >= 0 && task->array.limit && array->n >= task->array.limit)
        return GATE_ARRAY;
    array->n += task->array.limit > 0;
    return n < 0 ? n : is_limited ? add_use(core, task) : GATE_NONE;
}

/* ---- letting tasks into their queue ---- */

/* Returns 1 if the task may enter its queue, 0 if not, or -ENOMEM. */
static int examine_task(
    struct core *core, struct task *task, struct array_use *array, int64_t now_us)
{
    task->gate = GATE_NONE;
    if (task->n_after > 0)
        return 0;
    if (task->request.begin_us > now_us) {
        if (task->request.begin_us < core->next_begin_us)
            core->next_begin_us = task->request.begin_us;
        return 0;
    }
    int gate = take_slot(core, task, array, now_us);
    task->gate = gate > 0 ? (enum task_gate)gate : GATE_NONE;
    return gate < 0 ? gate : gate == GATE_NONE;
}

/* Lets the task into its queue, if it may enter it. Returns 0 or -ENOMEM. */
static int admit_task(struct core *core, struct task *task, struct array_use *array, int64_t now_us)
{
    int r = examine_task(core, task, array, now_us);
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
        r = admit_task(core, task, &array, now_us);
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
            r = admit_task(core, task, array, now_us);
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
    int r = core->blocked_queue.first ? count_uses(core) : 0;
    if (r == 0)
        r = all ? admit_all(core, now_us) : admit_openings(core, now_us);
    core->openings.n = 0;
    return r;
}
