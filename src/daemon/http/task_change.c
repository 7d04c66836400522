/* SPDX-License-Identifier: Apache-2.0 */
/* The change of one task: the checks in the order in which they are answered, then the event. */
#include "daemon/http/task_change.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/http/routes.h"

enum { CHANGES_MAX = 1000 }; /* of a task by its user; chosen: `colloc show` lists each */

int http_check_change(
    const struct http *http, uid_t uid, const struct event *event, struct fault *fault)
{
    struct jobs *jobs = http->parts.jobs;
    const struct job *job = jobs_find(jobs, event->task);
    unsigned long long id = event->task;
    const struct task *task = core_task(http->parts.core, event->task);
    if (event->kind == EVENT_RUN_AGAIN && task && task->request.once)
        return fault_set(fault, EINVAL,
            "task %llu is run once (--requeue=no): cancel it, and `colloc rerun %llu` submits it "
            "again",
            id, id);
    if (!job || uid != job->uid || uid == 0 || !jobs_is_change(event->kind))
        return 0;
    if (job->changes >= CHANGES_MAX)
        return fault_set(fault, EBUSY,
            "task %llu has been changed %d times, which is the most: submit it again", id,
            CHANGES_MAX);
    if (jobs_bytes_of_user(jobs, job->uid, driver_now_us(http->parts.driver)) >=
        http->parts.config->bytes_per_user)
        return fault_set(fault, EBUSY,
            "task %llu cannot be changed: your tasks have as much text in the event log as a user "
            "may have here (bytes-per-user)",
            id);
    return 0;
}

int http_check_command(
    const struct http *http, uid_t uid, const struct event *event, struct fault *fault)
{
    int64_t most = HTTP_COMMANDS_PER_DAY * (event->kind == EVENT_RESUME ? 2 : 1);
    if (uid == 0 ||
        jobs_commands_of_user(http->parts.jobs, uid, driver_now_us(http->parts.driver)) < most)
        return 0;
    return fault_set(fault, EAGAIN,
        "your tasks were suspended, resumed or moved %d times in 24 hours, which is the most for a "
        "user: try again in an hour",
        HTTP_COMMANDS_PER_DAY);
}

/* A running task can also be ended while the log cannot be written (driver.c). */
static bool is_ended_at_once(struct http *http, enum event_kind kind, const struct task *task)
{
    return kind == EVENT_CANCEL && task &&
           (attempts_is_watched(http->parts.attempts, task->id) || task_was_ended(task));
}

static void __attribute__((format(printf, 3, 4)))
set_status(struct task_change *change, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(change->message.text, sizeof change->message.text, format, args);
    va_end(args);
    change->status = status;
}

static int feed_event(const struct task_change_request *request, const struct event *event)
{
    json_t *detail = author_detail(request->http, request->uid);
    int r = driver_feed(request->http->parts.driver, event, detail);
    json_decref(detail);
    return r;
}

/* What to do instead of a change that the task's state does not allow; "": nothing. `task`: NULL
 * once it has ended. */
static const char *find_remedy(enum event_kind kind, const struct task *task)
{
    if (kind == EVENT_HOLD && task && task_state_has_attempt(task->state))
        return ": only one that waits can; `colloc suspend` takes one off its GPUs";
    if (kind == EVENT_RUN_AGAIN && (!task || task_state_is_done(task->state)))
        return ": `colloc rerun` submits it again, under a new id";
    return "";
}

static void feed_change(
    const struct task_change_request *request, const json_t *record, struct task_change *change)
{
    struct http *http = request->http;
    struct driver *driver = http->parts.driver;
    const struct task *task = core_task(http->parts.core, change->task);
    struct event event = driver_event(driver, request->kind, change->task);
    unsigned long long id = change->task;
    const char *state = json_string_value(json_object_get(record, "state"));
    struct fault fault;
    change->is_ended_at_once = is_ended_at_once(http, request->kind, task);
    if (!may_change(http, request->uid, http_record_owner(record))) {
        change->status = 403;
        set_not_yours(&change->message, "task", id);
    } else if (driver_log_is_broken(driver) && !change->is_ended_at_once)
        set_status(change, 507, "the event log cannot be written at the moment");
    else if (http_check_change(http, request->uid, &event, &fault) < 0)
        set_status(change, 409, "%s", fault.text);
    else if (request->kind == EVENT_CANCEL && task && task_was_ended(task))
        change->status = 200;
    else if (!task || feed_event(request, &event) != 0)
        set_status(change, 409, "task %llu is %s: it cannot be %s%s", id, state, request->verb,
            find_remedy(request->kind, task));
    else
        change->status = 200;
}

void task_change_feed(const struct task_change_request *request, struct task_change *change)
{
    json_t *record = NULL;
    struct fault fault = {0};
    int r = http_read_record(request->http, change->task, &fault, &record);
    if (r == STORE_NONE) {
        change->status = 404;
        http_set_no_task(&change->message, change->task, "");
    } else if (r < 0)
        set_status(change, 500, "%s", fault.text);
    else
        feed_change(request, record, change);
    json_decref(record);
}

void task_change_settle(const struct task_change_request *request, struct task_change *change)
{
    unsigned long long id = change->task;
    if (change->status != 200 || !driver_log_is_broken(request->http->parts.driver))
        return;
    if (change->is_ended_at_once)
        set_status(change, 202,
            "task %llu is being ended; that will be recorded once the disk of the event log has "
            "space",
            id);
    else
        set_status(change, 507,
            "task %llu will be %s, but the event log cannot be written at the moment", id,
            request->verb);
}

void http_apply_limits(const struct http *http, const struct event *event, struct fault *fault)
{
    if (event->kind == EVENT_UPDATE && (event->update.sets_time_limit || event->update.sets_host))
        attempts_apply_limits(http->parts.attempts, event->task, fault);
}
