/* SPDX-License-Identifier: Apache-2.0 */
/* A task that has ended is counted, in the result and in what else is to be filled, and freed. The
 * services that end with the trainings end after the last of these. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "sim/simulation_run.h"

static void add_completion(struct simulation_run *run, const struct task *ended)
{
    struct completions *completions = run->simulation->completions;
    if (ARRAY_RESERVE(completions->jct_s, completions->capacity, ended->id) < 0) {
        simulation_run_check(run, -ENOMEM);
        return;
    }
    while (completions->n < ended->id)
        completions->jct_s[completions->n++] = 0;
    completions->jct_s[ended->id - 1] = (double)(ended->ended_us - ended->submitted_us) /
                                        (double)SECOND_US;
}

static void add_ended_training(
    struct simulation_run *run, const struct simulated_task *task, const struct task *ended)
{
    bool completed = ended->state == TASK_COMPLETED, stopped = ended->state == TASK_STOPPED;
    double work_s = task->type->solo_s;
    if (stopped)
        work_s = fmax(0, task->solo_s - task->running.left_s);
    else
        *(completed ? &run->result.completed : &run->result.failed) += 1;
    if (task->trial)
        simulated_trial_end(run, task, ended);
    simulated_promise_end(run, task, ended);
    simulated_probes_end(run, ended);
    run->n_unended--;
    run_totals_add_ended(&run->totals, ended);
    run->result.suspensions += ended->run->yield.suspensions + ended->run->yield.pauses;
    run->result.moves += ended->run->yield.moves;
    run->result.memory_waits += ended->run->memory_wait.count;
    run->result.memory_wait_s += (double)ended->run->memory_wait.waited_us / (double)SECOND_US;
    if (run->simulation->completions && !stopped)
        add_completion(run, ended);
    if (run->simulation->users)
        simulation_run_check(run, user_totals_add(run->simulation->users, ended,
                                      intern_get(&run->arrivals.users, (int)ended->uid), work_s));
}

/* One that ends with the trainings ends no run. */
static void add_ended_service(
    struct simulation_run *run, const struct simulated_task *task, const struct task *ended)
{
    run->n_services--;
    if (isfinite(task->solo_s))
        run_totals_end_service(&run->totals, ended->ended_us);
}

void simulated_services_check_end(struct simulation_run *run)
{
    if (run->n_services && !run->n_unended && !run->next_arrival.task)
        simulation_run_wake(run, WAKE_SERVICES_END, sim_now_us(run->sim), 0, 0);
}

/* Counts a task that has ended, and frees it. */
static void forget_task(struct simulation_run *run, struct simulated_task *task)
{
    uint64_t id = task->running.id;
    const struct task *ended = core_task(sim_core(run->sim), id);
    const struct sim_task *completed = ended->state == TASK_COMPLETED ? task->type : NULL;
    uint32_t uid = ended->uid;
    (task->service ? add_ended_service : add_ended_training)(run, task, ended);
    if (run->simulation->tasks_out)
        task_rows_add(run->simulation->tasks_out, ended, task->type->name);
    run->tasks[id] = NULL;
    core_forget(sim_core(run->sim), id);
    free(task->service);
    free(task->trial);
    free(task);
    if (completed && run->simulation->learns)
        learning_note(run, completed, uid);
    simulated_services_check_end(run);
}

void simulated_task_forget_if_done(struct simulation_run *run, uint64_t id)
{
    const struct task *now = core_task(sim_core(run->sim), id);
    if (now && task_state_is_done(now->state))
        forget_task(run, run->tasks[id]);
}
