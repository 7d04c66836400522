/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cancel, hold or release of one task by a user, in two halves, for the changes of many tasks are
 * written to the log together:
 *
 *     task_change_feed     checks what the user and the task's state allow, and feeds the event
 *                          ... the log is written ...
 *     task_change_settle   knows whether it is durable
 *
 * A running task can also be ended while the log cannot be written (driver.c).
 */
#ifndef COLLOC_DAEMON_HTTP_TASK_CHANGE_H
#define COLLOC_DAEMON_HTTP_TASK_CHANGE_H

#include "daemon/http/http_state.h"

struct task_change {
    uint64_t task;
    int status;           /* of HTTP: 200; 202 with a note; or an error's, with its message */
    struct fault message; /* "": none */
    bool is_ended_at_once;
};

/* What all tasks of a request share. */
struct task_change_request {
    struct http *http;
    enum event_kind kind; /* a CANCEL, a HOLD or a RELEASE */
    const char *verb;     /* "cancelled" */
    uid_t uid;            /* of the user; the log has it */
};

/* Feeds the change of `change->task`, or sets the error. */
void task_change_feed(const struct task_change_request *request, struct task_change *change);

/* The log has been written since, or cannot be. */
void task_change_settle(const struct task_change_request *request, struct task_change *change);

enum {
    HTTP_COMMANDS_PER_DAY = 2000, /* of a user; chosen: 5 MB of the event log, every 43 s */
};

/*
 * Checks whether the user may suspend, resume or move a task once more: each is in the event log,
 * with what follows from it. A resumption is allowed until twice the limit, so that no task of the
 * user stays suspended because of it.
 *
 * uid:   who sent the command; root may always
 * event: the command
 *
 * Returns 0, or -EAGAIN with the reason in `fault`.
 */
int http_check_command(
    const struct http *http, uid_t uid, const struct event *event, struct fault *fault);

/*
 * Checks whether the user may change the task once more. All changes of a task are in the event
 * log, which its owner must not fill.
 *
 * uid:   who changes it; root and operators may always
 * event: only a HOLD and an UPDATE are limited
 *
 * Returns 0, or -EBUSY with the reason in `fault`.
 */
int http_check_change(
    const struct http *http, uid_t uid, const struct event *event, struct fault *fault);

/* After an UPDATE was fed: puts its limits in force for the attempt of its task. Sets the fault if
 * not all of them are. */
void http_apply_limits(const struct http *http, const struct event *event, struct fault *fault);

#endif
