/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an HTTP/1 reply that a probe needs: its status, and where it ends. */
#ifndef COLLOC_DAEMON_SERVICES_HTTP_REPLY_H
#define COLLOC_DAEMON_SERVICES_HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_REPLY_HEAD_MAX = 8192 }; /* chosen: what servers allow for a request's head, too */

/* All zero before the first byte. Owns nothing. */
struct http_reply {
    char head[HTTP_REPLY_HEAD_MAX + 1];
    size_t head_size;
    bool has_head;
    int64_t body_left; /* of the body; -1: it ends with the connection */
};

enum http_reply_state {
    HTTP_REPLY_MORE, /* more bytes belong to it */
    HTTP_REPLY_DONE, /* it is complete, with a status of 2xx */
    HTTP_REPLY_BAD,  /* another status, or no HTTP */
};

/* Takes the next bytes of the reply, any bytes. Returns its state; bytes after its end are
 * ignored. */
enum http_reply_state http_reply_take(struct http_reply *reply, const char *bytes, size_t size);

/* Returns whether the reply is complete, now that the connection has ended. */
bool http_reply_ends(const struct http_reply *reply);

#endif
