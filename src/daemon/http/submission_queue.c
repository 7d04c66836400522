/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks: submissions come in, are read in turn, and made durable. All that were read in
 * one turn of the loop become durable together, then are answered: a submit that was answered
 * survives a power cut.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/http/submission.h"

#define READ_MAX_US                                                                                \
    (20 * MS_US) /* of one user's in one turn, and what the last of them takes longer */
#define READERS_MAX 256

/* ---- coming in ---- */

static void append(struct daemon *daemon, struct submission *submission)
{
    submission->next = NULL;
    *(daemon->submissions_last ? &daemon->submissions_last->next
                               : &daemon->submissions_first) = submission;
    daemon->submissions_last = submission;
    daemon->n_submissions++;
}

static struct submission *take_all(struct daemon *daemon)
{
    struct submission *first = daemon->submissions_first;
    daemon->submissions_first = daemon->submissions_last = NULL;
    daemon->n_submissions = 0;
    return first;
}

static void on_submitter_named(void *context, const struct name *name)
{
    struct submission *submission = context;
    struct daemon *daemon = submission->daemon;
    if (name->uid != 0 && jobs_of_user(daemon, name->uid) >= daemon->config.tasks_per_user) {
        api_reply_error(submission->request, 503,
            "%d tasks of yours have not ended: that is the most a user may have here (tasks-per-user)",
            daemon->config.tasks_per_user);
        submission_free(submission);
    } else {
        snprintf(submission->user, sizeof submission->user, "%s", name->name);
        append(daemon, submission);
    }
    daemon_serve_soon(daemon);
}

void route_submit(void *context, struct api_request *request)
{
    struct daemon *daemon = context;
    if (daemon->stopping) {
        api_reply_error(request, 503, "collocd is going down");
        return;
    }
    struct submission *submission = calloc(1, sizeof *submission);
    if (!submission) {
        api_reply(request, 500, NULL);
        return;
    }
    submission->daemon = daemon;
    submission->request = request;
    names_ask_uid(daemon->names, api_request_peer(request).uid, on_submitter_named, submission);
}

/* ---- read, each user in turn ---- */

/* How long each user's submissions have taken in this turn. */
struct readers {
    struct reader {
        uid_t uid;
        int64_t took_us;
    } reader[READERS_MAX];
    size_t n;
};

/* More users than there is room for count as one. */
static struct reader *reader_of(struct readers *readers, uid_t uid)
{
    size_t i = 0;
    while (i < readers->n && readers->reader[i].uid != uid)
        i++;
    if (i == READERS_MAX)
        return &readers->reader[READERS_MAX - 1];
    if (i == readers->n)
        readers->reader[readers->n++] = (struct reader){.uid = uid};
    return &readers->reader[i];
}

static bool has_room_for(struct daemon *daemon, const struct submission *submission)
{
    uid_t uid = api_request_peer(submission->request).uid;
    return uid == 0 ||
           bytes_of_user(daemon, uid) + submission->text_bytes <= daemon->config.bytes_per_user;
}

static void refuse_for_size(const struct daemon *daemon, struct submission *submission)
{
    char size[32];
    api_reply_error(submission->request, 503,
        "scripts, environments and summaries of your tasks that have not ended, or ended in the last "
        "24 hours, would have more than %s: that is the most a user may have here (bytes-per-user)",
        format_size(daemon->config.bytes_per_user, size, sizeof size));
}

static bool read_or_refuse(struct daemon *daemon, struct submission *submission)
{
    struct fault fault = {0};
    int r = submission_read(daemon, submission, &fault);
    if (r == 0 && has_room_for(daemon, submission))
        return true;
    if (r == 0)
        refuse_for_size(daemon, submission);
    else
        api_reply_error(submission->request, r == -EMSGSIZE ? 413 : 400, "%s", fault.text);
    submission_free(submission);
    return false;
}

/*
 * Those that are read and may be queued. Reading one can take long, for its summary is estimated:
 * who has had his time in this turn waits for the next one, and the others' requests come in
 * between.
 */
static struct submission *read_due(struct daemon *daemon)
{
    struct submission *due = NULL, **last = &due;
    struct readers readers = {.n = 0};
    for (struct submission *at = take_all(daemon), *next; at; at = next) {
        next = at->next;
        at->next = NULL;
        struct reader *reader = reader_of(&readers, api_request_peer(at->request).uid);
        if (reader->took_us >= READ_MAX_US) {
            append(daemon, at);
            continue;
        }
        int64_t before_us = clock_monotonic_us();
        if (read_or_refuse(daemon, at)) {
            *last = at;
            last = &at->next;
        }
        reader->took_us += clock_monotonic_us() - before_us;
    }
    return due;
}

/* ---- into the log, and answered ---- */

static int put_text(struct daemon *daemon, struct submission *submission, const char *key,
    const void *data, size_t size, struct fault *fault)
{
    char blob[65];
    int r = store_put_blob(daemon->store, submission->event.task, data, size, fault, blob);
    return r < 0                                                                 ? r
           : json_object_set_new(submission->detail, key, json_string(blob)) < 0 ? -ENOMEM
                                                                                 : 0;
}

static int write_submission(
    struct daemon *daemon, struct submission *submission, struct fault *fault)
{
    const json_t *summary = json_object_get(api_request_body(submission->request), "summary");
    const json_t *text = json_object_get(summary, "text");
    submission->event.task = daemon->next_id++;
    submission->event.time_us = driver_now_us(daemon->driver);
    int r = put_text(
        daemon, submission, "script", submission->script, submission->script_size, fault);
    if (r == 0)
        r = put_text(daemon, submission, "environment", submission->environment,
            submission->environment_size, fault);
    if (r == 0 && text)
        r = put_text(daemon, submission, "summary", json_string_value(text),
            json_string_length(text), fault);
    if (r == 0)
        r = store_append(
            daemon->store, &submission->event, clock_wall_us(), submission->detail, fault);
    return r;
}

static int write_all(struct daemon *daemon, struct submission *first, struct fault *fault)
{
    if (driver_log_is_broken(daemon->driver))
        return fault_set(fault, ENOSPC,
            "the event log cannot be written at the moment (collocd's own log says why)");
    if (driver_reserve_is_in_use(daemon->driver))
        return fault_set(fault, ENOSPC, "the disk of the event log is full");
    int r = store_begin(daemon->store, fault);
    for (struct submission *at = first; at && r == 0; at = at->next)
        r = write_submission(daemon, at, fault);
    if (r == 0)
        return store_commit(daemon->store, fault);
    store_rollback(daemon->store);
    return r;
}

static void accept_submission(struct daemon *daemon, struct submission *submission)
{
    uint64_t id = submission->event.task;
    if (!job_add(daemon, id, submission->event.submit.uid, submission->detail)) {
        log_error("out of memory: going down; task %llu is durable and comes back",
            (unsigned long long)id);
        abort();
    }
    api_reply(submission->request, 201,
        json_pack("{s:I, s:O}", "id", (json_int_t)id, "warnings", submission->warnings));
    audit_event(daemon, &submission->event, submission->detail);
    driver_feed_logged(daemon->driver, &submission->event);
}

void submissions_flush(struct daemon *daemon)
{
    struct submission *first = read_due(daemon);
    struct fault fault = {0};
    if (!first)
        return;
    uint64_t next_id = daemon->next_id;
    int r = write_all(daemon, first, &fault);
    if (r < 0)
        daemon->next_id = next_id;
    for (struct submission *at = first, *next; at; at = next) {
        next = at->next;
        if (r < 0)
            api_reply_error(at->request, 507, "nothing was queued: %s", fault.text);
        else
            accept_submission(daemon, at);
        submission_free(at);
    }
}

void submissions_refuse(struct daemon *daemon)
{
    for (struct submission *at = take_all(daemon), *next; at; at = next) {
        next = at->next;
        api_reply_error(at->request, 503, "collocd is going down");
        submission_free(at);
    }
}
