/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons and parts of spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/span_parts.h"

static void assert_span(struct span s, const char *text)
{
    assert_int_equal(s.size, strlen(text));
    assert_memory_equal(s.at, text, s.size);
}

static void test_parts_are_taken_from_the_front(void **state)
{
    struct span text = span_of("a,,bc"), none = {0};
    assert_span(span_take_until(&text, ','), "a");
    assert_span(span_take_until(&text, ','), "");
    assert_span(text, "bc");
    assert_span(span_take_until(&text, ','), "bc");
    assert_span(span_take_until(&text, ','), "");
    assert_span(span_take_until(&none, ','), "");
    text = span_of("one\r\n\ntwo");
    assert_span(span_take_line(&text), "one\r\n");
    assert_span(span_take_line(&text), "\n");
    assert_span(span_take_line(&text), "two");
    assert_span(span_take_line(&text), "");
}

static void test_two_spans_and_case(void **state)
{
    struct span none = {0};
    assert_true(span_equals(span_of("ab"), (struct span){"abc", 2}) && span_equals(none, none));
    assert_false(span_equals(span_of("ab"), span_of("aB")) || span_equals(span_of("a"), none));
    assert_true(span_is_nocase(span_of("NodeName"), "nodename"));
    assert_false(span_is_nocase(span_of("NodeName"), "NodeNam") ||
                 span_is_nocase(span_of("NodeNam"), "NodeName"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_taken_from_the_front),
        cmocka_unit_test(test_two_spans_and_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
