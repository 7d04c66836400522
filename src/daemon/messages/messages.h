/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to users about their tasks, by mail or webhook (docs/messages.md).
 *
 * Contract:
 *   1. Messages are made from the event log. After a crash, at whatever instant, those of each
 *      event in the log are made once.
 *   2. Each is delivered at least once, or given up with a line in the log: it was refused, or
 *      MESSAGE_ATTEMPTS_MAX attempts failed. One that was being delivered when the daemon was
 *      killed is delivered again, with the same id.
 *   3. The loop never waits: a helper process, which runs as the user, delivers one message.
 *   4. No log has an address or a message's text.
 */
#ifndef COLLOC_DAEMON_MESSAGES_MESSAGES_H
#define COLLOC_DAEMON_MESSAGES_MESSAGES_H

#include "daemon/messages/messages_options.h"

enum {
    MESSAGE_ATTEMPTS_MAX = 12, /* chosen: with the usual message-retry, eight hours */
    MESSAGE_HELPERS = 4,       /* at a time, one for a share; chosen */
};

struct messages;

/* Opens the queue. `options` is copied. Returns NULL with a fault. */
struct messages *messages_create(const struct messages_options *options, struct fault *fault);

/* Makes the messages of the events in the log that have none yet, and delivers those that are due.
 * NULL is fine. */
void messages_start(struct messages *messages);

/* An event is in the log. NULL is fine. */
void messages_note(struct messages *messages, const struct event *event);

/* A GPU that has failed, or is well again. */
struct gpu_health_change {
    const char *name;      /* "0 (NVIDIA H200)" */
    const char *health;    /* "lost", "faulty" or "ok" */
    const char *why;       /* for people; "" when it is ok */
    const uint64_t *tasks; /* that have it */
    size_t n_tasks;
};

/* Makes the messages about a GPU to the administrator (setting alerts-to) and, if it has failed, to
 * the users of its tasks that want them. They are not made from the event log: a daemon that is
 * killed in the same moment makes none. NULL is fine. */
void messages_note_gpu(struct messages *messages, const struct gpu_health_change *change);

/* A process that uses a GPU outside of tasks. */
struct outside_use {
    uid_t uid;
    gid_t gid;
    const char *user;    /* name, or "" of an unlisted one */
    const char *process; /* "python (pid 4711)" */
    const char *gpu;     /* "0" */
};

/* Makes the messages to the process's user: on its terminals and, with a mail server, by mail. They
 * end with the setting outside-text. NULL is fine. */
void messages_note_outside(struct messages *messages, const struct outside_use *use);

/* Nothing is delivered any more. NULL is fine. */
void messages_close(struct messages *messages);

/* Releases the part once the loop has run after messages_close. NULL is fine. */
void messages_destroy(struct messages *messages);

#endif
