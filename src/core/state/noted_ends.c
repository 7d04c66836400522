/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of tasks on which others depend, by rising id, until they are judged
 * (decide/dependency_judge.c). An end is noted only if a dependency is on its task. The note has
 * what was learned of the end, since the driver may forget the task before its turn comes.
 */
#include "core/state/noted_ends.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "core/state/dependents.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

size_t core_ends_before(const struct core *core, uint64_t id)
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
    struct dependent on_task = core_before_ranges(core, &core->on_tasks, id);
    struct dependent on_array = core_before_ranges(core, &core->on_arrays, id);
    return core_next_range(&core->on_tasks, id, &on_task) ||
           core_next_range(&core->on_arrays, id, &on_array);
}

int core_note_end(struct core *core, uint64_t id, bool failed)
{
    size_t i = core_ends_before(core, id);
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

void core_forget_first_end(struct core *core)
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
            r = core_note_end(core, task->id, !task_state_is_success(task->state));
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
