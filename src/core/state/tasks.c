/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tasks by id, in one sorted array: ids rise, so that adding is appending.
 *
 * Ids are whole numbers, each larger than the one before: task `first + n` is at position n, or
 * before it if tasks between have been forgotten. Mostly none has.
 */
#include "core/state/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/state/state.h"

int core_task_position(const struct core *core, uint64_t id)
{
    int low = 0, high = core->n_tasks;
    if (high > 0 && core->tasks[high - 1]->id <= id) /* mostly it is the newest, or a new one */
        return core->tasks[high - 1]->id == id ? high - 1 : high;
    uint64_t first = high > 0 ? core->tasks[0]->id : 0;
    if (id <= first) /* of an event without a task it is 0 */
        return 0;
    if (id - first < (uint64_t)high)
        high = (int)(id - first);
    if (high < core->n_tasks && core->tasks[high]->id == id)
        return high;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (core->tasks[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct task *core_find_task(const struct core *core, uint64_t id)
{
    int i = core_task_position(core, id);
    return i < core->n_tasks && core->tasks[i]->id == id ? core->tasks[i] : NULL;
}

struct task_label core_task_label(const struct core *core, uint64_t id)
{
    const struct task *task = core_find_task(core, id);
    return task ? task_label(task) : task_label_of_id(id);
}

struct task *core_add_task(struct core *core, uint64_t id)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task || ARRAY_RESERVE(core->tasks, core->tasks_capacity, core->n_tasks + 1) < 0) {
        free(task);
        return NULL;
    }
    int at = core_task_position(core, id);
    memmove(
        &core->tasks[at + 1], &core->tasks[at], (size_t)(core->n_tasks - at) * sizeof *core->tasks);
    core->tasks[at] = task;
    core->n_tasks++;
    task->id = id;
    task->run = task_no_run();
    return task;
}
