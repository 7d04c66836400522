/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler learns from completed runs of a user's task: its memory and its activity, for
 * the next submission and for those that wait. */
#include <math.h>

#include "sim/simulation_run.h"

static struct learned_runs *learned_of(
    const struct simulation_run *run, const struct sim_task *type)
{
    return &run->learned[type - run->simulation->catalogue->tasks];
}

/* What a completed run says. */
static struct task_estimate estimate_by_run(const struct sim_task *type)
{
    return (struct task_estimate){{NEED_ESTIMATED, type->memory_bytes},
        isnan(type->demand.smact) ? READING_NONE : reading_of(type->demand.smact)};
}

void learning_add(const struct simulation_run *run, const struct sim_task *type, uint32_t uid,
    struct task_request *request)
{
    const struct task_estimate learned = estimate_by_run(type);
    if (learned_runs_knows(learned_of(run, type), uid))
        task_request_learn(request, &learned);
}

void learning_note(struct simulation_run *run, const struct sim_task *type, uint32_t uid)
{
    struct event event = {
        .kind = EVENT_ESTIMATE, .time_us = sim_now_us(run->sim), .estimate = estimate_by_run(type)};
    int r = learned_runs_note(learned_of(run, type), uid);
    simulation_run_check(run, r);
    for (uint64_t id = 1; r == 1 && !run->error && id <= run->n_tasks; id++) {
        const struct task *task = run->tasks[id] ? core_task(sim_core(run->sim), id) : NULL;
        event.task = id;
        if (task && run->tasks[id]->type == type && task->uid == uid &&
            !task_state_has_attempt(task->state))
            simulation_run_check(run, sim_step(run->sim, &event));
    }
}
