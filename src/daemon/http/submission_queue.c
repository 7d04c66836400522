/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks: submissions are queued, read and made durable. To read one can take long, because
 * its model summary is estimated. So each user has some milliseconds of a turn of the loop:
 *
 *     queued   ada 1, ada 2, ada 3, bob 1      reading one takes 15 ms; a user has 20 ms
 *     turn 1   ada 1, ada 2, bob 1             one transaction, then three answers
 *     turn 2   ada 3
 *
 * A submission with a large summary leaves the queue, and returns with the estimate of a helper
 * process (memory_requirement.h) to be read again: GPUs and other tasks may have changed meanwhile.
 * Like all others it gets its id and its reply when it is durable.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/audit.h"
#include "daemon/dependencies.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/memory_requirement.h"
#include "daemon/http/routes.h"
#include "daemon/http/submission.h"

#define READ_MAX_US                                                                                \
    (20 * MS_US)        /* of one user in one turn; the last one read may exceed it; chosen */
#define READERS_MAX 256 /* chosen */

/* ---- limits ---- */

/* Limits of the number of tasks that have not ended, as messages name them. */
static const struct task_limit {
    const char *setting, *holder, *whose, *subject;
} user_limit = {"tasks-per-user", "user", "yours", "you"},
  project_limit = {"tasks-per-project", "project", "your project", "your project"};

static int limit_max(const struct http *http, const struct task_limit *limit)
{
    const struct config *config = http->parts.config;
    return limit == &user_limit ? config->tasks_per_user : config->tasks_per_project;
}

/* Would the users of this user's project have too many? "default" has no limits, nor has root. */
static bool exceeds_project(const struct http *http, uid_t uid, int n)
{
    const struct config *config = http->parts.config;
    const struct share_table *shares = &config->share_table;
    int project = share_table_find(shares, uid).project;
    if (config->tasks_per_project == 0 || project == 0)
        return false;
    for (int i = 0; i < shares->n_users; i++)
        if (shares->users[i].project == project && shares->users[i].uid != 0)
            n += jobs_of_uid(http->parts.jobs, shares->users[i].uid);
    return n > config->tasks_per_project;
}

/* Returns the limit that `n` further tasks of a user would exceed; NULL: none. */
static const struct task_limit *find_exceeded(const struct http *http, uid_t uid, int n)
{
    if (uid == 0)
        return NULL;
    if (jobs_of_user(http->parts.jobs, uid) + n > http->parts.config->tasks_per_user)
        return &user_limit;
    return exceeds_project(http, uid, n) ? &project_limit : NULL;
}

static int task_count(const struct submission *submission)
{
    return submission->array.count > 0 ? submission->array.count : 1;
}

static void refuse_for_count(
    const struct http *http, struct submission *submission, const struct task_limit *limit)
{
    int max = limit_max(http, limit);
    if (submission->array.count > 0)
        api_reply_error(submission->request, 503,
            "with these %d tasks %s would have more than %d that have not ended: that is the most a "
            "%s may have here (%s)",
            submission->array.count, limit->subject, max, limit->holder, limit->setting);
    else
        api_reply_error(submission->request, 503,
            "%d tasks of %s have not ended: that is the most a %s may have here (%s)", max,
            limit->whose, limit->holder, limit->setting);
}

/* Would the texts of the user's tasks, and `more`, have too many bytes? */
static bool exceeds_size(const struct http *http, const struct submission *submission, int64_t more)
{
    uid_t uid = api_request_peer(submission->request).uid;
    int64_t now_us = driver_now_us(http->parts.driver);
    return uid != 0 &&
           jobs_bytes_of_user(http->parts.jobs, uid, now_us) + more + submission->text_bytes >
               http->parts.config->bytes_per_user;
}

static void refuse_for_size(const struct http *http, struct submission *submission)
{
    char size[32];
    api_reply_error(submission->request, 503,
        "scripts, environments, arguments and summaries of your tasks that have not ended, or ended in "
        "the last 24 hours, would have more than %s: that is the most a user may have here "
        "(bytes-per-user)",
        format_size(http->parts.config->bytes_per_user, size, sizeof size));
}

/* ---- the queue ---- */

static void append_submission(struct http *http, struct submission *submission)
{
    submission->next = NULL;
    *(http->submissions_last ? &http->submissions_last->next
                             : &http->submissions_first) = submission;
    http->submissions_last = submission;
    http->n_submissions++;
}

static struct submission *take_all(struct http *http)
{
    struct submission *first = http->submissions_first;
    http->submissions_first = http->submissions_last = NULL;
    http->n_submissions = 0;
    return first;
}

static void on_submitter_named(void *context, const struct name *name)
{
    struct submission *submission = context;
    struct http *http = submission->http;
    const struct task_limit *limit = find_exceeded(http, name->uid, 1);
    if (limit) {
        refuse_for_count(http, submission, limit);
        submission_free(submission);
    } else {
        snprintf(submission->user, sizeof submission->user, "%s", name->name);
        append_submission(http, submission);
    }
    http_serve_soon(http);
}

void route_submit(void *context, struct api_request *request)
{
    struct http *http = context;
    if (http->refuses_submissions) {
        api_reply_error(request, 503, "collocd is going down");
        return;
    }
    struct submission *submission = calloc(1, sizeof *submission);
    if (!submission) {
        api_reply(request, 500, NULL);
        return;
    }
    submission->http = http;
    submission->request = request;
    names_ask_uid(http->parts.names, api_request_peer(request).uid, on_submitter_named, submission);
}

/* ---- read, each user in turn ---- */

/* What each user's submissions have taken of this turn, and what of them becomes tasks: neither the
 * core nor the jobs know those yet. */
struct readers {
    struct reader {
        uid_t user; /* names_counted_uid */
        int project;
        int64_t took_us;
        int due_tasks;
        int64_t due_bytes;
    } reader[READERS_MAX];
    size_t n;
};

/* Users beyond READERS_MAX count as one. */
static struct reader *reader_of(const struct http *http, struct readers *readers, uid_t uid)
{
    uid_t user = names_counted_uid(http->parts.names, uid);
    size_t i = 0;
    while (i < readers->n && readers->reader[i].user != user)
        i++;
    if (i == READERS_MAX)
        return &readers->reader[READERS_MAX - 1];
    if (i == readers->n)
        readers->reader[readers->n++] = (struct reader){.user = user,
            .project = share_table_find(&http->parts.config->share_table, uid).project};
    return &readers->reader[i];
}

static int status_of(int r)
{
    switch (r) {
    case -EMSGSIZE:
        return 413;
    case -EPERM:
        return 403;
    case -EADDRINUSE:
    case -EDQUOT:
        return 409;
    case -EBUSY:
    case -ECANCELED:
    case -ENOMEM:
    case -ETIMEDOUT:
        return 503;
    default:
        return 400;
    }
}

static void refuse_submission(struct submission *submission, int r, const struct fault *fault)
{
    api_reply_error(submission->request, status_of(r), "%s", fault->text);
    submission_free(submission);
}

/* It is not in the queue at that time. */
static void on_estimated(struct submission *submission, int r, const struct fault *fault)
{
    struct http *http = submission->http;
    if (r < 0) {
        refuse_submission(submission, r, fault);
    } else {
        submission_unread(submission);
        append_submission(http, submission);
    }
    http_serve_soon(http);
}

static bool read_or_refuse(struct http *http, struct submission *submission)
{
    struct fault fault = {0};
    int r = submission_read(http, submission, &fault);
    if (r == REQUIREMENT_LATER) {
        r = requirement_begin(http, submission, on_estimated);
        if (r == 0)
            return false;
        fault_set(&fault, ENOMEM, "out of memory");
    }
    /* An array may be more tasks than its user has left. */
    uid_t uid = api_request_peer(submission->request).uid;
    const struct task_limit *limit = find_exceeded(http, uid, task_count(submission));
    if (r == 0 && !limit && !exceeds_size(http, submission, 0))
        return true;
    if (r == 0 && limit)
        refuse_for_count(http, submission, limit);
    else if (r == 0)
        refuse_for_size(http, submission);
    else
        api_reply_error(submission->request, status_of(r), "%s", fault.text);
    submission_free(submission);
    return false;
}

/* Does a submission of this turn have the same port? */
static bool is_port_due(const struct submission *due, const struct submission *submission)
{
    const struct option_value *port = &submission->options[TASK_PORT];
    for (; due && port->set; due = due->next)
        if (due->options[TASK_PORT].set && due->options[TASK_PORT].number == port->number)
            return true;
    return false;
}

/* May it exceed a limit of its user or project together with the submissions of this turn? */
static bool may_exceed(const struct http *http, const struct readers *readers,
    const struct reader *own, const struct submission *submission)
{
    uid_t uid = api_request_peer(submission->request).uid;
    int n = task_count(submission);
    for (size_t i = 0; i < readers->n; i++) {
        const struct reader *reader = &readers->reader[i];
        if (reader == own || (own->project != 0 && reader->project == own->project))
            n += reader->due_tasks;
    }
    return n > task_count(submission) &&
           (find_exceeded(http, uid, n) || exceeds_size(http, submission, own->due_bytes));
}

/*
 * Reads the submissions of this turn, and returns those that become tasks; the others have been
 * refused, or are being estimated. Three kinds go back to the queue: those of users whose time in
 * this turn is used up; services whose port an earlier submission of this turn has; and those that
 * may exceed a limit together with earlier ones. They are judged in the next turn, when the earlier
 * ones are tasks.
 */
static struct submission *read_due(struct http *http)
{
    struct submission *due = NULL, **last = &due;
    struct readers readers = {.n = 0};
    for (struct submission *at = take_all(http), *next; at; at = next) {
        next = at->next;
        at->next = NULL;
        struct reader *reader = reader_of(http, &readers, api_request_peer(at->request).uid);
        if (reader->took_us >= READ_MAX_US) {
            append_submission(http, at);
            continue;
        }
        int64_t before_us = clock_monotonic_us();
        bool is_read = read_or_refuse(http, at);
        if (is_read && (is_port_due(due, at) || may_exceed(http, &readers, reader, at))) {
            submission_unread(at);
            append_submission(http, at);
        } else if (is_read) {
            reader->due_tasks += task_count(at);
            reader->due_bytes += at->text_bytes;
            *last = at;
            last = &at->next;
        }
        reader->took_us += clock_monotonic_us() - before_us;
    }
    return due;
}

/* ---- made durable, and answered ---- */

static int put_text(struct http *http, struct submission *submission, const char *key,
    const void *data, size_t size, struct fault *fault)
{
    char blob[65];
    int r = store_put_blob(http->parts.store, submission->event.task, data, size, fault, blob);
    return r < 0                                                                 ? r
           : json_object_set_new(submission->detail, key, json_string(blob)) < 0 ? -ENOMEM
                                                                                 : 0;
}

static int write_submission(struct http *http, struct submission *submission, struct fault *fault)
{
    const json_t *summary = json_object_get(api_request_body(submission->request), "summary");
    const json_t *text = json_object_get(summary, "text");
    submission->event.task = jobs_take_id(http->parts.jobs);
    for (int i = 0; i < submission->array.count; i++)
        submission->elements[i].task = jobs_take_id(http->parts.jobs);
    submission->event.time_us = driver_now_us(http->parts.driver);
    int r = put_text(
        http, submission, "script", submission->script, submission->script_size, fault);
    if (r == 0)
        r = put_text(http, submission, "environment", submission->environment,
            submission->environment_size, fault);
    if (r == 0 && text)
        r = put_text(
            http, submission, "summary", json_string_value(text), json_string_length(text), fault);
    if (r == 0)
        r = store_append(
            http->parts.store, &submission->event, clock_wall_us(), submission->detail, fault);
    return r;
}

static int write_all(struct http *http, struct submission *first, struct fault *fault)
{
    if (driver_log_is_broken(http->parts.driver))
        return fault_set(fault, ENOSPC,
            "the event log cannot be written at the moment (collocd's own log says why)");
    if (driver_reserve_is_in_use(http->parts.driver))
        return fault_set(fault, ENOSPC, "the disk of the event log is full");
    int r = store_begin(http->parts.store, fault);
    for (struct submission *at = first; at && r == 0; at = at->next)
        r = write_submission(http, at, fault);
    if (r == 0)
        return store_commit(http->parts.store, fault);
    store_rollback(http->parts.store);
    return r;
}

static void add_job(struct http *http, const struct submission *submission, uint64_t id)
{
    if (jobs_add(http->parts.jobs, id, submission->event.submit.uid, submission->detail))
        return;
    log_error(
        "out of memory: going down; task %llu is durable and comes back", (unsigned long long)id);
    abort();
}

static void reply_accepted(const struct submission *submission)
{
    json_t *body = json_pack(
        "{s:I, s:O}", "id", (json_int_t)submission->event.task, "warnings", submission->warnings);
    if (body && submission->array.count > 0)
        json_object_set_new(body, "tasks", json_integer(submission->array.count));
    api_reply(submission->request, 201, body);
}

static void accept_submission(struct http *http, struct submission *submission)
{
    uint64_t id = submission->event.task;
    int count = submission->array.count;
    if (count == 0)
        add_job(http, submission, id);
    for (int i = 0; i < count; i++)
        add_job(http, submission, submission->elements[i].task);
    reply_accepted(submission);
    audit_event(http->parts.core, http->parts.jobs, &submission->event, submission->detail);
    driver_feed_logged(http->parts.driver, &submission->event);
    if (submission->event.submit.request.n_after > 0)
        dependencies_catch_up(http->parts.core, http->parts.store, http->parts.driver, id,
            count ? submission->elements[count - 1].task : id);
}

void submissions_flush(struct http *http)
{
    struct submission *first = read_due(http);
    struct fault fault = {0};
    if (!first)
        return;
    uint64_t next_id = jobs_next_id(http->parts.jobs);
    int r = write_all(http, first, &fault);
    if (r < 0)
        jobs_set_next_id(http->parts.jobs, next_id);
    for (struct submission *at = first, *next; at; at = next) {
        next = at->next;
        if (r < 0)
            api_reply_error(at->request, 507, "nothing was queued: %s", fault.text);
        else
            accept_submission(http, at);
        submission_free(at);
    }
}

void submissions_refuse(struct http *http)
{
    for (struct submission *at = take_all(http), *next; at; at = next) {
        next = at->next;
        api_reply_error(at->request, 503, "collocd is going down");
        submission_free(at);
    }
}
