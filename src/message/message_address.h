/* SPDX-License-Identifier: Apache-2.0 */
/* Which messages a task's user wants, and where to. Pure. */
#ifndef COLLOC_MESSAGE_MESSAGE_ADDRESS_H
#define COLLOC_MESSAGE_MESSAGE_ADDRESS_H

#include "base/fault.h"

/* What a message is about. Stored in messages.db by these numbers. */
enum message_kind {
    MESSAGE_START,                   /* the task gets its GPUs */
    MESSAGE_END,                     /* it has ended, whatever the outcome */
    MESSAGE_FAIL,                    /* it has ended and did not complete, nor was it cancelled */
    MESSAGE_REQUEUE,                 /* an attempt crashed, and another follows */
    MESSAGE_SUSPEND,                 /* it has been suspended for long */
    MESSAGE_IDLE,                    /* it has not used its GPUs for long */
    MESSAGE_GPU,                     /* one of its GPUs is lost or faulty */
    MESSAGE_KINDS,                   /* those above are of tasks: a user can ask for them */
    MESSAGE_OUTSIDE = MESSAGE_KINDS, /* a process uses a GPU outside of tasks */
};

/* Returns "start", "end", ...: of --notify, and in webhooks. */
const char *message_kind_name(enum message_kind kind);

/*
 * Parses a comma-separated list of such names, "all" or "none".
 *
 * ret_kinds: bits 1 << enum message_kind
 *
 * Returns 0, or -EINVAL with a fault that lists the names.
 */
int message_kinds_parse(const char *text, struct fault *fault, unsigned *ret_kinds);

enum message_form {
    MESSAGE_BY_MAIL,
    MESSAGE_BY_WEBHOOK,   /* JSON as docs/messages.md has it */
    MESSAGE_BY_SLACK,     /* the JSON of Slack's incoming webhooks, which Mattermost takes, too */
    MESSAGE_ON_TERMINALS, /* of the user, where that has any; no address is needed */
};

struct message_address {
    enum message_form form;
    const char *target; /* within the parsed text: a mail address or a URL */
};

/*
 * Parses "ada@example.org", "mailto:ada@example.org", "ada" (of this machine),
 * "https://example.org/hook", "http://..." or "slack+https://hooks.slack.com/...".
 *
 * Returns 0, or -EINVAL with a fault; the fault does not repeat the text, which may be secret.
 */
int message_address_parse(
    const char *text, struct fault *fault, struct message_address *ret_address);

#endif
