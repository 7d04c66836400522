/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP replies of every kind, in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "daemon/services/http_reply.h"

/* The state after the text, in pieces of `piece` bytes; and whether the reply ends with it. */
static enum http_reply_state take(const char *text, size_t piece, bool *ret_ends)
{
    struct http_reply reply = {.head_size = 0};
    enum http_reply_state state = HTTP_REPLY_MORE;
    for (size_t at = 0, size = strlen(text); at < size && state == HTTP_REPLY_MORE; at += piece)
        state = http_reply_take(&reply, text + at, size - at < piece ? size - at : piece);
    *ret_ends = http_reply_ends(&reply);
    return state;
}

static void replies_of_every_kind(void **state)
{
    static const struct {
        const char *text;
        enum http_reply_state state;
        bool ends; /* with the connection */
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n", HTTP_REPLY_DONE, true},
        {"HTTP/1.0 204 No Content\r\nCONTENT-LENGTH:0\r\n\r\n", HTTP_REPLY_DONE, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", HTTP_REPLY_MORE, false},
        {"HTTP/1.1 200 OK\r\n\r\nany body", HTTP_REPLY_MORE, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok\n", HTTP_REPLY_MORE, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nok", HTTP_REPLY_MORE, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", HTTP_REPLY_MORE,
            true},
        {"HTTP/1.1 200 OK\r\nContent-Le", HTTP_REPLY_MORE, false},
        {"HTTP/1.1 503 Service Unavailable\r\n\r\n", HTTP_REPLY_BAD, false},
        {"HTTP/1.1 2000 OK\r\n\r\n", HTTP_REPLY_BAD, false},
        {"SSH-2.0-OpenSSH_9.2p1\r\n\r\n", HTTP_REPLY_BAD, false},
        {"\r\n\r\n", HTTP_REPLY_BAD, false},
    };
    static const size_t pieces[] = {1, 3, 1000};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t k = 0; k < ARRAY_SIZE(pieces); k++) {
            bool ends;
            assert_int_equal(take(cases[i].text, pieces[k], &ends), cases[i].state);
            if (cases[i].state != HTTP_REPLY_BAD)
                assert_int_equal(ends, cases[i].ends);
        }
}

static void heads_without_an_end_are_refused(void **state)
{
    struct http_reply reply = {.head_size = 0};
    char bytes[1000];
    enum http_reply_state answer = HTTP_REPLY_MORE;
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 8; i++)
        answer = http_reply_take(&reply, bytes, sizeof bytes);
    assert_int_equal(answer, HTTP_REPLY_MORE);
    assert_int_equal(http_reply_take(&reply, bytes, sizeof bytes), HTTP_REPLY_BAD);
}

static void zeroes_are_no_head(void **state)
{
    struct http_reply reply = {.head_size = 0};
    static const char bytes[] = "HTTP/1.1 200 OK\0\r\n\r\n";
    assert_int_equal(http_reply_take(&reply, bytes, sizeof bytes - 1), HTTP_REPLY_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_of_every_kind),
        cmocka_unit_test(heads_without_an_end_are_refused),
        cmocka_unit_test(zeroes_are_no_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
