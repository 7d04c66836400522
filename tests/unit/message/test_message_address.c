/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts are addresses and lists of messages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "message/message_address.h"

static void lists_of_messages(void **state)
{
    struct fault fault = {0};
    unsigned kinds;
    assert_int_equal(message_kinds_parse("end,fail", &fault, &kinds), 0);
    assert_int_equal(kinds, 1 << MESSAGE_END | 1 << MESSAGE_FAIL);
    assert_int_equal(message_kinds_parse("BEGIN,End,FAIL", &fault, &kinds), 0);
    assert_int_equal(kinds, 1 << MESSAGE_START | 1 << MESSAGE_END | 1 << MESSAGE_FAIL);
    assert_int_equal(message_kinds_parse("all", &fault, &kinds), 0);
    assert_int_equal(kinds, (1 << MESSAGE_KINDS) - 1);
    assert_int_equal(message_kinds_parse("none", &fault, &kinds), 0);
    assert_int_equal(kinds, 0);
    static const char *const wrong[] = {"", "end,", ",", "ENDS", "end fail", "end,none", "ends"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(message_kinds_parse(wrong[i], &fault, &kinds), -EINVAL);
}

static void good_addresses(void **state)
{
    static const struct {
        const char *text, *target;
        enum message_form form;
    } good[] = {
        {"ada@example.org", "ada@example.org", MESSAGE_BY_MAIL},
        {"mailto:a.d-a+x@sub.example.org", "a.d-a+x@sub.example.org", MESSAGE_BY_MAIL},
        {"ada", "ada", MESSAGE_BY_MAIL},
        {"https://example.org/hook?x=1", "https://example.org/hook?x=1", MESSAGE_BY_WEBHOOK},
        {"http://127.0.0.1:8080", "http://127.0.0.1:8080", MESSAGE_BY_WEBHOOK},
        {"http://[::1]:8080/", "http://[::1]:8080/", MESSAGE_BY_WEBHOOK},
        {"slack+https://hooks.slack.com/services/T/B/X", "https://hooks.slack.com/services/T/B/X",
            MESSAGE_BY_SLACK},
    };
    struct fault fault = {0};
    struct message_address address;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(message_address_parse(good[i].text, &fault, &address), 0);
        assert_string_equal(address.target, good[i].target);
        assert_int_equal(address.form, good[i].form);
    }
}

static void bad_addresses(void **state)
{
    static const char *const bad[] = {"", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\r\nRCPT TO:<x>",
        "<a@b>", "-f@b", "a@-b", "ftp://secret.example", "file:///etc/passwd", "https://",
        "https:///x", "http://a b", "http://a\n", "slack+ftp://x", "smtp://x", "https://h/\"",
        "gopher://x"};
    struct fault fault = {0};
    struct message_address address;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(message_address_parse(bad[i], &fault, &address), -EINVAL);
        assert_null(strstr(fault.text, "secret")); /* it may be one */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_messages),
        cmocka_unit_test(good_addresses),
        cmocka_unit_test(bad_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
