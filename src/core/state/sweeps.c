/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reports of an array at each rung of its stop rule (core/halving.h). They outlive the tasks
 * that made them, since the driver forgets tasks that have ended: so a METRIC has the array's id as
 * its task, and a restart replays it as long as a task of the array is live.
 *
 * A task has the rank of its last report. Whether it is losing is found when the report is applied;
 * that it is stopped is a decision (decide/early_stop.c).
 */
#include "core/state/sweeps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "core/questions.h"
#include "core/state/task_attempt.h"
#include "core/state/tasks.h"

struct sweep {
    uint64_t array;
    struct halving_rule rule;
    struct {
        double *costs;
        size_t n, capacity;
    } rungs[STOP_RUNGS_MAX];
};

static struct sweep *find_sweep(const struct core *core, uint64_t array)
{
    for (size_t i = 0; i < core->n_sweeps; i++)
        if (core->sweeps[i]->array == array)
            return core->sweeps[i];
    return NULL;
}

int core_begin_sweep(struct core *core, uint64_t array, const struct halving_rule *rule)
{
    if (rule->factor == 0)
        return 0;
    if (ARRAY_RESERVE(core->sweeps, core->sweeps_capacity, core->n_sweeps + 1) < 0)
        return -ENOMEM;
    struct sweep *sweep = calloc(1, sizeof *sweep);
    if (!sweep)
        return -ENOMEM;
    sweep->array = array;
    sweep->rule = *rule;
    core->sweeps[core->n_sweeps++] = sweep;
    return 0;
}

const struct halving_rule *core_halving_rule(const struct core *core, uint64_t array)
{
    const struct sweep *sweep = array ? find_sweep(core, array) : NULL;
    return sweep ? &sweep->rule : NULL;
}

static void free_sweep(struct sweep *sweep)
{
    for (int i = 0; i < STOP_RUNGS_MAX; i++)
        free(sweep->rungs[i].costs);
    free(sweep);
}

/* The driver may have forgotten a task that has ended: its report counts for the others. */
static bool may_report(const struct task *task, const struct event *event)
{
    return !task || (task->array.id == event->task && task->has_process &&
                        event->metric.rung >= task->run->n_rungs);
}

int core_apply_metric(struct core *core, const struct event *event)
{
    struct sweep *sweep = event->task ? find_sweep(core, event->task) : NULL;
    struct task *task = core_find_task(core, event->metric.task);
    int rung = event->metric.rung;
    if (!sweep)
        return CORE_NO_SUCH_TASK;
    if (rung < 0 || rung >= STOP_RUNGS_MAX || !may_report(task, event))
        return CORE_NOT_NOW;
    size_t n = sweep->rungs[rung].n;
    if (ARRAY_RESERVE(sweep->rungs[rung].costs, sweep->rungs[rung].capacity, n + 1) < 0)
        return -ENOMEM;
    double cost = halving_cost(&sweep->rule, reading_assume(event->metric.value, NAN));
    if (task) { /* it has a run, as it was placed */
        task->run->stop = halving_judge(&sweep->rule, rung, sweep->rungs[rung].costs, n, cost);
        task->run->n_rungs = rung + 1;
    }
    sweep->rungs[rung].costs[sweep->rungs[rung].n++] = cost;
    return 0;
}

int core_apply_stop(struct task *task, const struct event *event)
{
    if (!task_state_has_attempt(task->state) || task->ending)
        return CORE_NOT_NOW;
    task->run->stop = event->stop;
    task->run->stop.is_losing = true;
    task->ending = FAILURE_STOPPED;
    core_begin_ending(task, event->time_us);
    return 0;
}

/* The tasks of an array have rising ids, all above its own. */
static bool is_task_left(const struct core *core, uint64_t array)
{
    int i = core_task_position(core, array);
    return i < core->n_tasks && core->tasks[i]->array.id == array;
}

void core_forget_sweep(struct core *core, uint64_t array)
{
    struct sweep *sweep = array ? find_sweep(core, array) : NULL;
    if (!sweep || is_task_left(core, array))
        return;
    for (size_t i = 0; i < core->n_sweeps; i++)
        if (core->sweeps[i] == sweep)
            core->sweeps[i] = core->sweeps[--core->n_sweeps];
    free_sweep(sweep);
}

void core_free_sweeps(struct core *core)
{
    for (size_t i = 0; i < core->n_sweeps; i++)
        free_sweep(core->sweeps[i]);
    free(core->sweeps);
}
