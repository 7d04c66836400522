/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the waiting tasks of a command. Each gets a separate event, which the log stores, so that a
 * restart and a replay know the same. */
#include "daemon/command_estimates.h"

#include "base/clock.h"
#include "core/equal_activity.h"
#include "daemon/learned_peak.h"

/* Chosen: in the second step the optimizer has its states. Of 64 trainings on an H200 63 held what
 * they held after six steps, one a quarter less (docs/measured/tunings.md). */
enum { STEPS_UNTIL_PEAK = 2 };

/* Chosen: a task that loads data or evaluates for the rest does as much more while it computes; the
 * model's error is larger. */
#define COMPUTING_PART 0.9

static bool needs_more(const struct task *task, const struct command_runs *runs)
{
    const struct need *need = &task->request.need;
    return need->kind == NEED_UNKNOWN ||
           (need->kind == NEED_ESTIMATED && need->bytes < command_runs_bytes(runs));
}

static bool waits_unknown(const struct task *task, const struct command_runs *runs)
{
    bool says_more = needs_more(task, runs) ||
                     (command_runs_smact(runs).valid && !task->request.expect.smact.valid);
    return says_more && task->request.need.kind != NEED_PENDING &&
           !task_state_is_done(task->state) && !task_state_has_attempt(task->state);
}

static bool is_of_command(const struct job *job, const struct command_runs *runs)
{
    return job && job->uid == runs->uid && command_history_is_of(job->subject, runs->key);
}

/* Memory that the user declared stays, and so does a higher estimate. */
static void feed_estimate(struct driver *driver, struct job *job, const struct task *task,
    const struct command_runs *runs)
{
    json_t *detail = NULL;
    struct event event = driver_event(driver, EVENT_ESTIMATE, job->id);
    event.estimate.smact = command_runs_smact(runs);
    if (needs_more(task, runs)) {
        json_int_t bytes = command_runs_bytes(runs);
        event.estimate.need = (struct need){NEED_ESTIMATED, bytes};
        detail = json_pack("{s:s, s:I, s:I}", "estimator", COMMAND_HISTORY_ESTIMATOR,
            "estimate_bytes", bytes, "predicted_bytes", bytes);
    }
    if (driver_feed(driver, &event, detail) == 0 && detail)
        job_note_estimate(job, detail);
    json_decref(detail);
}

static void feed_command(struct driver *driver, const struct core *core, const struct jobs *jobs,
    const struct command_runs *runs)
{
    uint64_t id = 0;
    int left = COMMAND_ESTIMATES_AT_ONCE;
    for (const struct task *task; runs && left > 0 && (task = core_next_task(core, id));) {
        id = task->id;
        struct job *job = waits_unknown(task, runs) ? jobs_find(jobs, id) : NULL;
        if (!is_of_command(job, runs))
            continue;
        feed_estimate(driver, job, task, runs);
        left--;
    }
}

void command_estimates_update(struct driver *driver, const struct core *core,
    const struct jobs *jobs, const struct command_history *history, const json_t *record)
{
    uint64_t key = 0;
    uid_t uid = (uid_t)json_integer_value(json_object_get(record, "uid"));
    if (command_history_read_key(json_object_get(record, "subject"), &key))
        feed_command(driver, core, jobs, command_history_find(history, uid, key));
}

static bool read_key(const struct job *job, uint64_t *ret_key)
{
    json_t *subject = job->subject ? json_loads(job->subject, 0, NULL) : NULL;
    bool known = command_history_read_key(subject, ret_key);
    json_decref(subject);
    return known;
}

static void note_steps(struct driver *driver, const struct core *core, const struct jobs *jobs,
    struct command_history *history, uint64_t id)
{
    uint64_t key = 0;
    const struct task *task = core_task(core, id);
    const struct job *job = task ? jobs_find(jobs, id) : NULL;
    struct reading peak = job && job->steps.total >= STEPS_UNTIL_PEAK
                              ? learned_peak(core, task, job)
                              : READING_NONE;
    if (!peak.valid || !read_key(job, &key))
        return;
    if (command_history_take_early(history, job->uid, key, (int64_t)peak.value))
        feed_command(driver, core, jobs, command_history_find(history, job->uid, key));
}

/* Has it made steps for nearly all of the time that the GPU's activity is a mean of? Not in a later
 * attempt: the time of its steps is that of all. */
static bool has_computed_throughout(
    const struct task *task, const struct job *job, const struct gpu_view *gpu)
{
    double since_mix_s = (double)(gpu->sampled_us - gpu->mix_since_us) / (double)SECOND_US;
    return task && job && task->attempts == 1 && job->steps.total >= STEPS_UNTIL_PEAK &&
           job->steps.timed_s >= COMPUTING_PART * since_mix_s;
}

static bool are_all_of_command(const struct core *core, const struct jobs *jobs,
    const struct gpu_view *gpu, const struct command_runs *runs)
{
    for (int i = 0; i < gpu->n_residents; i++) {
        uint64_t id = gpu->residents[i].task;
        const struct job *job = jobs_find(jobs, id);
        if (!is_of_command(job, runs) || !has_computed_throughout(core_task(core, id), job, gpu))
            return false;
    }
    return true;
}

/* What each of the GPU's tasks does, if all are of one command whose activity is not known yet. */
static void note_activity(struct driver *driver, const struct core *core, const struct jobs *jobs,
    struct command_history *history, const struct gpu_view *gpu)
{
    uint64_t key = 0;
    const struct job *job = gpu->n_residents ? jobs_find(jobs, gpu->residents[0].task) : NULL;
    if (!job || job->steps.total < STEPS_UNTIL_PEAK || !read_key(job, &key))
        return;
    const struct command_runs *runs = command_history_find(history, job->uid, key);
    if (!runs || command_runs_smact(runs).valid || !are_all_of_command(core, jobs, gpu, runs))
        return;
    struct reading each = equal_activity(gpu, core_view(core)->constants);
    if (each.valid && command_history_take_activity(history, job->uid, key, each.value))
        feed_command(driver, core, jobs, runs);
}

void command_estimates_note_steps(struct driver *driver, const struct core *core,
    const struct jobs *jobs, struct command_history *history)
{
    const struct cluster_view *view = core_view(core);
    for (int i = 0; i < view->n_gpus; i++) {
        for (int k = 0; k < view->gpus[i].n_residents; k++)
            note_steps(driver, core, jobs, history, view->gpus[i].residents[k].task);
        note_activity(driver, core, jobs, history, &view->gpus[i]);
    }
}
