/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets of a process are accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "preload/protocol.h"

static struct preload_message a_wait(void)
{
    struct preload_message message = preload_message_of(PRELOAD_WAIT);
    message.reason = PRELOAD_NEEDS_MEMORY;
    message.task = 7;
    message.bytes = 1 << 20;
    return message;
}

static int decode(const struct preload_message *message)
{
    struct preload_message decoded = {0};
    int r = preload_request_decode(message, sizeof(*message), &decoded);
    assert_true(r == 0 || decoded.magic == 0);
    return r;
}

static void test_what_a_process_sends(void **state)
{
    struct preload_message hello = preload_message_of(PRELOAD_HELLO), wait = a_wait();
    assert_int_equal(decode(&hello), 0);
    assert_int_equal(decode(&wait), 0);
}

static void test_what_only_the_daemon_sends(void **state)
{
    for (int kind = PRELOAD_WELCOME; kind <= PRELOAD_FAIL + 1; kind++) {
        struct preload_message message = a_wait();
        message.kind = (uint8_t)kind;
        assert_int_equal(decode(&message), -EBADMSG);
    }
}

static void test_what_is_out_of_range(void **state)
{
    struct preload_message wrong[7];
    for (int i = 0; i < 7; i++)
        wrong[i] = a_wait();
    wrong[0].magic++;
    wrong[1].kind = 0;
    wrong[2].reason = 0;
    wrong[3].reason = PRELOAD_OVER_CAP + 1;
    wrong[4].bytes = 0;
    wrong[5].bytes = UINT64_MAX;
    wrong[6].ordinal = 16;
    for (int i = 0; i < 7; i++)
        assert_int_equal(decode(&wrong[i]), -EBADMSG);
    struct preload_message held = a_wait();
    held.held_bytes = UINT64_MAX;
    assert_int_equal(decode(&held), -EBADMSG);
}

static void test_another_version(void **state)
{
    struct preload_message message = a_wait();
    message.version++;
    assert_int_equal(decode(&message), -EPROTO);
}

static void test_another_size(void **state)
{
    struct preload_message messages[2] = {a_wait(), a_wait()}, decoded;
    for (size_t size = 0; size <= sizeof(messages); size++)
        assert_int_equal(preload_request_decode(messages, size, &decoded),
            size == sizeof(messages[0]) ? 0 : -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_process_sends),
        cmocka_unit_test(test_what_only_the_daemon_sends),
        cmocka_unit_test(test_what_is_out_of_range),
        cmocka_unit_test(test_another_version),
        cmocka_unit_test(test_another_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
