/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tasks depend on which. An open dependency is held twice: by its task, and in an index by
 * the range of ids that it is on. Dependencies on one task and those on arrays have an index each:
 * the former are found by the id of the task that has ended, of the latter there are as many ranges
 * as arrays that others wait for.
 *
 *     after=ok:12        20 and 21 wait for it     on_tasks:  12-12 ok 20, 12-12 ok 21
 *     after=any:11       30 waits for an array     on_arrays: 11-14 any 30
 *
 * A dependency is on tasks with smaller ids only, so there is no cycle.
 */
#include "core/state/dependents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/state/state.h"
#include "core/state/waiting.h"

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

bool core_next_range(const struct dependents *index, uint64_t id, struct dependent *group)
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

struct dependent core_before_ranges(
    const struct core *core, const struct dependents *index, uint64_t id)
{
    bool is_on_tasks = index == &core->on_tasks;
    return (struct dependent){.range = {.first = is_on_tasks ? id - 1 : 0, .last = UINT64_MAX}};
}

uint64_t core_first_dependent(const struct dependents *index, const struct dependency *range)
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
