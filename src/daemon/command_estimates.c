/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the waiting tasks of a command. Each gets a separate event, which the log stores, so that a
 * restart and a replay know the same. */
#include "daemon/command_estimates.h"

static bool waits_unknown(const struct task *task, const struct command_runs *runs)
{
    bool says_more = task->request.need.kind == NEED_UNKNOWN ||
                     (runs->smact >= 0 && !task->request.expect.smact.valid);
    return says_more && task->request.need.kind != NEED_PENDING &&
           !task_state_is_done(task->state) && !task_state_has_attempt(task->state);
}

static bool is_of_command(const struct job *job, const struct command_runs *runs)
{
    return job && job->uid == runs->uid && command_history_is_of(job->subject, runs->key);
}

/* Memory that the user declared, or that an estimator found, stays. */
static void feed_estimate(struct driver *driver, struct job *job, const struct task *task,
    const struct command_runs *runs)
{
    json_t *detail = NULL;
    struct event event = driver_event(driver, EVENT_ESTIMATE, job->id);
    if (runs->smact >= 0)
        event.estimate.smact = reading_of(runs->smact);
    if (task->request.need.kind == NEED_UNKNOWN) {
        event.estimate.need = (struct need){NEED_ESTIMATED, runs->peak_bytes};
        detail = json_pack("{s:s, s:I, s:I}", "estimator", COMMAND_HISTORY_ESTIMATOR,
            "estimate_bytes", (json_int_t)runs->peak_bytes, "predicted_bytes",
            (json_int_t)runs->peak_bytes);
    }
    if (driver_feed(driver, &event, detail) == 0 && detail)
        job_note_estimate(job, detail);
    json_decref(detail);
}

void command_estimates_update(struct driver *driver, const struct core *core,
    const struct jobs *jobs, const struct command_history *history, const json_t *record)
{
    uint64_t key = 0, id = 0;
    int left = COMMAND_ESTIMATES_AT_ONCE;
    uid_t uid = (uid_t)json_integer_value(json_object_get(record, "uid"));
    if (!command_history_read_key(json_object_get(record, "subject"), &key))
        return;
    const struct command_runs *runs = command_history_find(history, uid, key);
    for (const struct task *task; runs && left > 0 && (task = core_next_task(core, id));) {
        id = task->id;
        struct job *job = waits_unknown(task, runs) ? jobs_find(jobs, id) : NULL;
        if (!is_of_command(job, runs))
            continue;
        feed_estimate(driver, job, task, runs);
        left--;
    }
}
