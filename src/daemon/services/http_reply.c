/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head is collected up to its empty line; then its status and Content-Length are read, and the
 * body is counted. A reply without Content-Length, chunked ones included, ends with the connection,
 * which the probe asks the server to close.
 */
#include "daemon/services/http_reply.h"

#include <ctype.h>
#include <string.h>

#include "base/units.h"

/* "HTTP/1.1 200 OK" */
static bool is_success(const char *head)
{
    return strncmp(head, "HTTP/1.", 7) == 0 && isdigit((unsigned char)head[7]) && head[8] == ' ' &&
           head[9] == '2' && isdigit((unsigned char)head[10]) && isdigit((unsigned char)head[11]) &&
           !isdigit((unsigned char)head[12]);
}

/* The number of the header Content-Length; -1: there is none that is a number. */
static int64_t body_length(const char *head)
{
    static const char name[] = "\r\ncontent-length:";
    char text[32];
    int64_t length;
    const char *at = strcasestr(head, name);
    if (!at)
        return -1;
    at += strlen(name);
    at += strspn(at, " \t");
    size_t size = strcspn(at, " \t\r\n");
    if (size == 0 || size >= sizeof text)
        return -1;
    memcpy(text, at, size);
    text[size] = '\0';
    return parse_int64(text, 0, INT64_MAX, &length) < 0 ? -1 : length;
}

/* Adds bytes to the head. Returns how many of them it took. */
static size_t take_head(struct http_reply *reply, const char *bytes, size_t size)
{
    size_t taken = 0;
    while (taken < size && !reply->has_head && reply->head_size < HTTP_REPLY_HEAD_MAX) {
        reply->head[reply->head_size++] = bytes[taken++];
        reply->head[reply->head_size] = '\0';
        reply->has_head = reply->head_size >= 4 &&
                          memcmp(reply->head + reply->head_size - 4, "\r\n\r\n", 4) == 0;
    }
    return taken;
}

enum http_reply_state http_reply_take(struct http_reply *reply, const char *bytes, size_t size)
{
    if (!reply->has_head) {
        size_t taken = take_head(reply, bytes, size);
        bytes += taken;
        size -= taken;
        if (!reply->has_head)
            return reply->head_size == HTTP_REPLY_HEAD_MAX ? HTTP_REPLY_BAD : HTTP_REPLY_MORE;
        if (strlen(reply->head) != reply->head_size || !is_success(reply->head))
            return HTTP_REPLY_BAD;
        reply->body_left = body_length(reply->head);
    }
    if (reply->body_left < 0)
        return HTTP_REPLY_MORE;
    reply->body_left -= (int64_t)size < reply->body_left ? (int64_t)size : reply->body_left;
    return reply->body_left == 0 ? HTTP_REPLY_DONE : HTTP_REPLY_MORE;
}

bool http_reply_ends(const struct http_reply *reply)
{
    return reply->has_head && reply->body_left <= 0;
}
