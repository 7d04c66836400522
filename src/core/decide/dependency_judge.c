/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges dependencies on tasks that have ended. All dependencies of one kind on one range are
 * decided by one judgement:
 *
 *     12 fails      range 12, ok:     20 and 21 wait for it: they can never start
 *                   range 11-14, any: 13 and 14 live, so that it stays as it is
 *
 * An end is judged in the step in which it is noted (state/noted_ends.c). A step decides only
 * JUDGED_MAX dependencies, so that an array on which 10,000 tasks depend does not keep the driver
 * from all else; the core then wants its next TICK at once. A task that ends because a dependency
 * of it broke is noted and judged like any other.
 */
#include "core/decide/dependency_judge.h"

#include "core/decide/effects.h"
#include "core/decide/ends.h"
#include "core/state/dependents.h"
#include "core/state/noted_ends.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

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
    for (size_t i = core_ends_before(core, range->first); i < core->ended.n && !failed; i++) {
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
    struct dependent group = core_before_ranges(core, index, id);
    int r = 0;
    while (r == 0 && *left > 0 && core_next_range(index, id, &group)) {
        struct dependency_end end = {.dependency = group.range};
        enum dependency_answer answer = judge_range(core, &group.range, &end.by);
        end.holds = answer == DEPENDENCY_HOLDS;
        for (uint64_t task; r == 0 && answer != DEPENDENCY_WAITS && *left > 0 &&
                            (task = core_first_dependent(index, &group.range)) != 0;
             (*left)--)
            r = decide_dependency(core, task, &end, now_us);
    }
    return r;
}

#define JUDGED_MAX 64 /* in a step; chosen: some milliseconds, with their entries in the log */

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
            core_forget_first_end(core);
    }
    return r;
}
