/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a message. Pure. */
#ifndef COLLOC_DAEMON_MESSAGES_MESSAGE_TEXT_H
#define COLLOC_DAEMON_MESSAGES_MESSAGE_TEXT_H

#include <jansson.h>
#include <stdint.h>

#include "message/message_address.h"

struct message_facts {
    enum message_kind kind;
    const json_t *task; /* the TASK object, as its owner sees it; NULL: for the administrator */
    const char *host;   /* name of this machine */
    int64_t seq;        /* of the event in the log */
    double at;          /* seconds since 1970 */
    const char *gpus;   /* of a start: "0, 1"; else "" */
    double idle_s;      /* of an idle holder */
    const char *health; /* of MESSAGE_GPU: "lost", "faulty" or "ok"; and `gpus` names the GPU */
    const char *why; /* of MESSAGE_GPU, for people; of MESSAGE_OUTSIDE the administrator's text */
    const char *process; /* of MESSAGE_OUTSIDE: "python (pid 4711)"; and `gpus` names its GPU */
};

/*
 * Makes the message as colloc-message reads it (message/message_helper.c), but for "id", which its
 * queue gives it.
 *
 * server, from: for mail
 *
 * Returns it for the caller to release; NULL when memory is out.
 */
json_t *message_make(const struct message_facts *facts, const struct message_address *to,
    const char *server, const char *from);

#endif
