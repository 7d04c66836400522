/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the event log to the state of the daemon before it ended.
 *
 * Each event of a task that has not ended is applied to the core, which decides nothing meanwhile,
 * and noted in the task's job. Attempts that still run are found later (attempts/attempt_adopt.c).
 */
#include <dirent.h>
#include <errno.h>

#include "base/log.h"
#include "base/units.h"
#include "daemon/attempt_list.h"
#include "daemon/daemon.h"
#include "daemon/state_dir.h"
#include "daemon/step_list.h"
#include "policy/policies.h"

/* The job of a submission, or those of an array. Returns 0 or -ENOMEM. */
static int add_jobs(struct jobs *jobs, const struct event *event, const json_t *detail)
{
    bool is_ok = event->submit.elements || jobs_add(jobs, event->task, event->submit.uid, detail);
    for (int i = 0; i < event->submit.n_elements && is_ok; i++)
        is_ok = jobs_add(jobs, event->submit.elements[i].task, event->submit.uid, detail);
    return is_ok ? 0 : -ENOMEM;
}

static int on_replayed(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    struct daemon *daemon = context;
    if (core_apply(daemon->core, event) < 0)
        return -ENOMEM;
    inputs_note_applied(daemon->inputs, event);
    if (event->kind == EVENT_SUBMIT && add_jobs(daemon->jobs, event, detail) < 0)
        return -ENOMEM;
    struct job *job = jobs_find(daemon->jobs, event->task);
    if (job && event->kind == EVENT_STARTED)
        job->started_attempt = core_task(daemon->core, event->task)->attempts;
    jobs_note_change(daemon->jobs, event, detail);
    if (job && event->kind == EVENT_EXITED)
        job_note_exit(job, event->exited.failure, detail);
    if (job && event->kind == EVENT_CANCEL)
        job_note_cancel(job, detail);
    if (job && event->kind == EVENT_ESTIMATE && detail)
        job_note_estimate(job, detail);
    if (job)
        attempt_list_note(&job->attempts, daemon->core, event);
    if (job && event->kind == EVENT_STEP)
        step_list_note(&job->srun_steps, event->time_us, detail);
    return 0;
}

/* The replayed events include tasks that ended beside live ones: those are forgotten again. */
static void forget_done(struct daemon *daemon)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(daemon->core, id));) {
        id = task->id;
        if (!task_state_is_done(task->state))
            continue;
        jobs_remove(daemon->jobs, jobs_find(daemon->jobs, id));
        core_forget(daemon->core, id);
        inputs_note_forgotten(daemon->inputs, id);
    }
}

/* Returns the largest id that has a folder. New ids are above it: after a log was lost, output
 * stays with the task that wrote it. */
static uint64_t last_folder(const struct daemon *daemon)
{
    char path[STATE_PATH_SIZE];
    int64_t id;
    uint64_t last = 0;
    snprintf(path, sizeof path, "%s/tasks", daemon->config.state_dir);
    DIR *tasks = opendir(path);
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));)
        if (parse_int64(entry->d_name, 1, INT64_MAX - 1, &id) == 0 && (uint64_t)id > last)
            last = (uint64_t)id;
    if (tasks)
        closedir(tasks);
    return last;
}

/* An empty log is a new one: an administrator has moved the earlier one away. */
static void report_loss(struct daemon *daemon, uint64_t last_task, uint64_t last_seen)
{
    char words[160];
    if (last_task > 0 && last_seen > last_task && !*store_get_loss(daemon->store)) {
        snprintf(words, sizeof words,
            "the event log ends at task %llu, but folders of tasks up to %llu are there",
            (unsigned long long)last_task, (unsigned long long)last_seen);
        store_note_loss(daemon->store, words, NULL);
    }
    if (*store_get_loss(daemon->store))
        log_error(
            "%s/colloc.db: %s. Restore it from a backup, or stop collocd and accept the loss: "
            "`colloc check --accept-loss` (`colloc check` says what is wrong)",
            daemon->config.state_dir, store_get_loss(daemon->store));
}

int event_log_open(struct daemon *daemon, struct fault *fault)
{
    uint64_t last_task;
    int64_t last_us;
    int r = store_open(daemon->config.state_dir, fault, &daemon->store);
    if (r == 0)
        r = store_get_last(daemon->store, fault, &last_task, &last_us);
    if (r < 0)
        return r;
    uint64_t last_seen = last_folder(daemon);
    report_loss(daemon, last_task, last_seen);
    jobs_set_next_id(daemon->jobs, (last_task > last_seen ? last_task : last_seen) + 1);
    r = wiring_create_driver(daemon, last_us, fault);
    if (r < 0)
        return r;
    r = store_replay(daemon->store, policy_find, on_replayed, daemon, fault);
    if (r == -ENOMEM && !*fault->text)
        return fault_set(fault, ENOMEM, "out of memory");
    if (r < 0)
        return r;
    forget_done(daemon);
    return run_history_load(&daemon->run_history, daemon->store, fault);
}
