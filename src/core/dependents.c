/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tasks depend on which, and what ends of tasks decide.
 *
 * An open dependency is held twice: by its task, and in an index by the range of ids that it is on.
 * Dependencies on one task and those on arrays have an index each: the former are found by the id
 * of the task that has ended, of the latter there are as many ranges as arrays that others wait
 * for. All dependencies of one kind on one range are decided by one judgement:
 *
 *     12 fails      range 12, ok:     20 and 21 wait for it: they can never start
 *                   range 11-14, any: 13 and 14 live, so that it stays as it is
 *
 * An end is noted if a dependency is on its task, and judged in the same step. A step decides only
 * JUDGED_MAX dependencies, so that an array on which 10,000 tasks depend does not keep the driver
 * from all else; the core then wants its next TICK at once. The note has what was learned of the
 * end, since the driver may forget the task meanwhile.
 *
 * A dependency is on tasks with smaller ids only, so there is no cycle: a task that ends because a
 * dependency of it broke is noted and judged like any other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/core_private.h"

#define JUDGED_MAX 64 /* in a step; chosen: some milliseconds, with their entries in the log */

/* ---- the index ---- */

static int compare_ids(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_dependents(const struct dependent *a, const struct dependent *b)
{
    int order = compare_ids(a->range.first, b->range.first);
    order = order ? order : compare_ids(a->range.last, b->range.last);
    order = order ? order : (int)a->range.kind - (int)b->range.kind;
    return order ? order : compare_ids(a->task, b->task);
}

/* Returns the position of the first entry that is not before `key`. */
static size_t find_position(const struct dependents *index, const struct dependent *key)
{
    size_t low = 0, high = index->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_dependents(&index->list[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct dependents *index_of(struct core *core, const struct dependency *range)
{
    return range->first == range->last ? &core->on_tasks : &core->on_arrays;
}

/* A task that has the same dependency twice is in the index once. */
static int add_dependent(struct core *core, const struct dependency *range, uint64_t task)
{
    struct dependents *index = index_of(core, range);
    const struct dependent key = {*range, task};
    size_t i = find_position(index, &key);
    if (i < index->n && compare_dependents(&index->list[i], &key) == 0)
        return 0;
    if (ARRAY_RESERVE(index->list, index->capacity, index->n + 1) < 0)
        return -ENOMEM;
    memmove(&index->list[i + 1], &index->list[i], (index->n - i) * sizeof *index->list);
    index->list[i] = key;
    index->n++;
    return 0;
}

static void remove_dependent(struct core *core, const struct dependency *range, uint64_t task)
{
    struct dependents *index = index_of(core, range);
    const struct dependent key = {*range, task};
    size_t i = find_position(index, &key);
    if (i == index->n || compare_dependents(&index->list[i], &key) != 0)
        return;
    index->n--;
    memmove(&index->list[i], &index->list[i + 1], (index->n - i) * sizeof *index->list);
}

/* Moves `group`, of which the range counts, on to the next range that has the id. */
static bool next_range(const struct dependents *index, uint64_t id, struct dependent *group)
{
    for (;;) {
        group->task = UINT64_MAX;
        size_t i = find_position(index, group);
        if (i == index->n || index->list[i].range.first > id)
            return false;
        *group = index->list[i];
        if (group->range.last >= id)
            return true;
    }
}

/* Where next_range starts. */
static struct dependent before_ranges(
    const struct core *core, const struct dependents *index, uint64_t id)
{
    bool is_on_tasks = index == &core->on_tasks;
    return (struct dependent){.range = {.first = is_on_tasks ? id - 1 : 0, .last = UINT64_MAX}};
}

/* Returns 0 when no task has the dependency any more. */
static uint64_t first_dependent(const struct dependents *index, const struct dependency *range)
{
    const struct dependent key = {*range, 0};
    size_t i = find_position(index, &key);
    return i < index->n && dependency_is_same(&index->list[i].range, range) ? index->list[i].task
                                                                            : 0;
}

/* ---- a task's dependencies ---- */

bool core_may_depend(uint64_t id, const struct dependency *after, int n_after)
{
    for (int i = 0; i < n_after; i++)
        if (after[i].first == 0 || after[i].first > after[i].last || after[i].last >= id)
            return false;
    return n_after >= 0 && n_after <= DEPENDENCIES_MAX;
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
    int r = 0;
    task->after = size ? malloc(size) : NULL;
    if (size && !task->after)
        return -ENOMEM;
    if (size)
        memcpy(task->after, task->request.after, size);
    task->n_after = task->request.n_after;
    for (int i = 0; i < task->n_after && r == 0; i++) {
        if (task->after[i].each)
            task->after[i] = one_of_range(&task->after[i], place);
        r = add_dependent(core, &task->after[i], task->id);
    }
    task->request.after = NULL;
    task->request.n_after = 0;
    return r;
}

void core_drop_dependencies(struct core *core, struct task *task)
{
    for (int i = 0; i < task->n_after; i++)
        remove_dependent(core, &task->after[i], task->id);
    task->n_after = 0;
    free(task->after);
    task->after = NULL;
}

/* Of equal ones, all. */
static bool remove_dependency(
    struct core *core, struct task *task, const struct dependency *dependency)
{
    int kept = 0, before = task->n_after;
    for (int i = 0; i < before; i++)
        if (!dependency_is_same(&task->after[i], dependency))
            task->after[kept++] = task->after[i];
    task->n_after = kept;
    if (kept < before)
        remove_dependent(core, dependency, task->id);
    if (kept == 0)
        core_drop_dependencies(core, task);
    return kept < before;
}

int core_apply_dependency(struct core *core, struct task *task, const struct event *event)
{
    if (task->ending || !remove_dependency(core, task, &event->dependency.dependency))
        return CORE_NOT_NOW;
    core_note_blocked(core, task, event->time_us);
    if (event->dependency.holds)
        return 0;
    if (task_begin_run(task) < 0)
        return -ENOMEM;
    task->ending = FAILURE_DEPENDENCY;
    task->run->broken = event->dependency;
    return 0;
}

/* ---- ends that are judged in this step or the next ---- */

/* Returns how many of the noted ends are before the id. */
static size_t ends_before(const struct core *core, uint64_t id)
{
    size_t low = 0, high = core->ended.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->ended.list[middle].task < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_dependents(const struct core *core, uint64_t id)
{
    struct dependent on_task = before_ranges(core, &core->on_tasks, id);
    struct dependent on_array = before_ranges(core, &core->on_arrays, id);
    return next_range(&core->on_tasks, id, &on_task) || next_range(&core->on_arrays, id, &on_array);
}

int core_note_end(struct core *core, uint64_t id, bool failed)
{
    size_t i = ends_before(core, id);
    if (!has_dependents(core, id) || (i < core->ended.n && core->ended.list[i].task == id))
        return 0;
    if (ARRAY_RESERVE(core->ended.list, core->ended.capacity, core->ended.n + 1) < 0)
        return -ENOMEM;
    struct noted_end *at = core->ended.list + i;
    memmove(at + 1, at, (core->ended.n - i) * sizeof *at);
    *at = (struct noted_end){id, failed};
    core->ended.n++;
    return 0;
}

static void forget_first_end(struct core *core)
{
    core->ended.n--;
    memmove(core->ended.list, core->ended.list + 1, core->ended.n * sizeof *core->ended.list);
}

/* Notes the tasks of the range that have ended, as far as the core knows them. */
static int note_ends_of(struct core *core, const struct dependency *range)
{
    int r = 0;
    for (int i = core_task_position(core, range->first); i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->id > range->last)
            break;
        if (task_state_is_done(task->state))
            r = core_note_end(core, task->id, task->state != TASK_COMPLETED);
    }
    return r;
}

int core_note_past_ends(struct core *core, uint64_t first, uint64_t last_task)
{
    struct dependency last = {.first = 0}; /* tasks of an array have the same dependencies */
    int r = 0;
    if (core->on_tasks.n == 0 && core->on_arrays.n == 0)
        return 0;
    for (int i = core_task_position(core, first); i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->id > last_task)
            break;
        for (int k = 0; k < task->n_after && r == 0; k++) {
            if (dependency_is_same(&task->after[k], &last))
                continue;
            last = task->after[k];
            r = note_ends_of(core, &last);
        }
    }
    return r;
}

/* ---- judging them ---- */

static bool has_live_task(const struct core *core, const struct dependency *range)
{
    for (int i = core_task_position(core, range->first); i < core->n_tasks; i++) {
        if (core->tasks[i]->id > range->last)
            return false;
        if (!task_state_is_done(core->tasks[i]->state))
            return true;
    }
    return false;
}

/* Judges a dependency on a range of which tasks have ended. `ret_by`: the first that failed, or the
 * last that completed. */
static enum dependency_answer judge_range(
    const struct core *core, const struct dependency *range, uint64_t *ret_by)
{
    bool failed = false;
    for (size_t i = ends_before(core, range->first); i < core->ended.n && !failed; i++) {
        const struct noted_end *end = &core->ended.list[i];
        if (end->task > range->last)
            break;
        failed = end->failed;
        *ret_by = end->task;
    }
    bool is_decided = failed && range->kind != DEPENDENCY_ANY;
    return dependency_judge(range->kind, is_decided || has_live_task(core, range), failed);
}

static int decide_dependency(
    struct core *core, uint64_t id, const struct dependency_end *end, int64_t now_us)
{
    struct event event = {
        .kind = EVENT_DEPENDENCY, .time_us = now_us, .task = id, .dependency = *end};
    int r = core_decide(core, &event);
    return r == 0 && !end->holds ? core_end_task(core, id, TASK_CANCELLED, now_us) : r;
}

/* Decides the dependencies of one index that are on the task, as many as are left. */
static int judge_index(
    struct core *core, const struct dependents *index, uint64_t id, int64_t now_us, int *left)
{
    struct dependent group = before_ranges(core, index, id);
    int r = 0;
    while (r == 0 && *left > 0 && next_range(index, id, &group)) {
        struct dependency_end end = {.dependency = group.range};
        enum dependency_answer answer = judge_range(core, &group.range, &end.by);
        end.holds = answer == DEPENDENCY_HOLDS;
        for (uint64_t task; r == 0 && answer != DEPENDENCY_WAITS && *left > 0 &&
                            (task = first_dependent(index, &group.range)) != 0;
             (*left)--)
            r = decide_dependency(core, task, &end, now_us);
    }
    return r;
}

int core_judge_dependencies(struct core *core, int64_t now_us)
{
    int r = 0, left = JUDGED_MAX;
    while (r == 0 && core->ended.n > 0) {
        uint64_t id = core->ended.list[0].task;
        r = judge_index(core, &core->on_tasks, id, now_us, &left);
        if (r == 0)
            r = judge_index(core, &core->on_arrays, id, now_us, &left);
        if (left <= 0)
            return r;
        if (r == 0)
            forget_first_end(core);
    }
    return r;
}
