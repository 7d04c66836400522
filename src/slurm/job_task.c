/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task of the core for a job of Slurm.
 *
 * The core has only jobs that may start soon, are pinned, run, or recover. Its task numbers are
 * colloc-slurm's own and begin at 1 with each controller; Slurm's ids are used only outside of it:
 *
 *     job 17 is in the window             SUBMIT, task 1
 *     its user holds it                   CANCEL, and the task is forgotten
 *     its user releases it                SUBMIT, task 2
 *     the core places it                  PLACE, a decision of the core
 *     a new controller finds it pinned    SUBMIT and PLACE, from the job's note
 *     Slurm shows it running              STARTED
 *     it has ended                        EXITED: the core decides what follows
 *
 * All but the core's own PLACE are inputs (core/event.h), applied without a decision; decisions
 * come with the TICK that ends an update.
 */
#include "slurm/job_task.h"

#include "base/clock.h"

/* The core counts from the placement, which is earlier than Slurm's start, or later where the
 * controller was created meanwhile, and does not know of Slurm's suspensions. So the limit of a job
 * that runs is the time from then to the end that Slurm expects; 1 us where that is past. Returns
 * 0: unlimited, or not known. */
static int64_t find_time_limit_us(const struct tracked_job *job)
{
    const struct slurm_job *record = job->record;
    if (job->phase != JOB_RUNNING || record->time_limit_s == 0)
        return record->time_limit_s * SECOND_US;
    if (record->end_s <= record->start_s)
        return 0;
    return record->end_s > job->placed_s ? (record->end_s - job->placed_s) * SECOND_US : 1;
}

void controller_update_time_limit(struct slurm_controller *controller, struct tracked_job *job)
{
    int64_t limit_us = find_time_limit_us(job);
    if (limit_us == job->time_limit_us)
        return;
    struct event event = {.kind = EVENT_UPDATE, .task = job->task}; /* not small: only if needed */
    job->time_limit_us = limit_us;
    event.update.sets_time_limit = event.update.may_raise = true;
    event.update.time_limit_us = limit_us;
    controller_apply(controller, event);
}

/* Slurm's priority changes all the time, with age and use: no reason to stop a job. Its `--nice`
 * does not: below 0 (operators only) a job comes first and stops others, above 0 it gives way. */
static int priority_of(const struct slurm_controller *controller, const struct tracked_job *job)
{
    if (!controller->options.settings.preempt)
        return PRIORITY_NORMAL;
    return job->nice < 0 ? PRIORITY_HIGH : job->nice > 0 ? PRIORITY_LOW : PRIORITY_NORMAL;
}

void controller_submit_task(struct slurm_controller *controller, struct tracked_job *job)
{
    struct event event = {.kind = EVENT_SUBMIT, .task = controller->next_task++};
    event.submit.uid = job->uid;
    event.submit.request = job->request;
    event.submit.request.priority = priority_of(controller, job);
    event.submit.request.once = !job->record->may_requeue;
    event.submit.request.time_limit_us = job->time_limit_us = find_time_limit_us(job);
    job->task = event.task;
    controller_apply(controller, event);
    if (id_map_set(&controller->by_task, job->task, job) < 0)
        controller->is_broken = true;
}

void controller_place_task(struct slurm_controller *controller, struct tracked_job *job,
    const int *gpus, int n, bool is_running)
{
    struct event event = {.kind = EVENT_PLACE, .task = job->task};
    event.place.gpus = gpus;
    event.place.n = n;
    job->placed_s = controller->wall_s;
    controller_apply(controller, event);
    if (is_running)
        controller_start_task(controller, job);
}

void controller_start_task(struct slurm_controller *controller, struct tracked_job *job)
{
    controller_apply(controller, (struct event){.kind = EVENT_STARTED, .task = job->task});
}

void controller_exit_task(
    struct slurm_controller *controller, const struct tracked_job *job, enum failure_class failure)
{
    struct event event = {.kind = EVENT_EXITED, .task = job->task};
    event.exited = (struct task_exit){.failure = failure, .code = failure ? 1 : 0};
    controller_apply(controller, event);
}

void controller_forget_task(struct slurm_controller *controller, struct tracked_job *job)
{
    core_forget(controller->core, job->task);
    id_map_remove(&controller->by_task, job->task);
    id_map_remove(&controller->by_id, job->slurm_id);
    job->task = 0;
}

void controller_drop_task(struct slurm_controller *controller, struct tracked_job *job)
{
    if (!job->task)
        return;
    enum task_state state = controller_task_state(controller, job);
    struct event end = {.kind = EVENT_END, .task = job->task, .end = TASK_CANCELLED};
    if (task_state_has_attempt(state))
        controller_exit_task(controller, job, FAILURE_CANCELLED);
    else if (!task_state_is_done(state) && state != TASK_EXITED)
        controller_apply(controller, (struct event){.kind = EVENT_CANCEL, .task = job->task});
    if (!task_state_is_done(state))
        controller_apply(controller, end);
    controller_forget_task(controller, job);
}
