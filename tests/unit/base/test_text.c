/* SPDX-License-Identifier: Apache-2.0 */
/* Spans, lines, and text that is not valid UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

static void assert_span(struct span s, const char *text)
{
    assert_int_equal(s.size, strlen(text));
    assert_memory_equal(s.at, text, s.size);
}

static void test_trim(void **state)
{
    assert_span(span_trim(span_of("  a b \t\r\n\v\f")), "a b");
    assert_span(span_trim(span_of("\xef\xbb\xbf gpus: 1")), "gpus: 1");
    assert_span(span_trim((struct span){"x\0\0", 3}), "x");
    assert_int_equal(span_trim(span_of(" \t ")).size, 0);
    assert_int_equal(span_trim((struct span){0}).size, 0);
}

static void test_is_compares_all_of_it(void **state)
{
    assert_true(span_is(span_of("magm"), "magm"));
    assert_false(span_is(span_of("magm"), "mag"));
    assert_false(span_is(span_of("mag"), "magm"));
    assert_false(span_is((struct span){"mag\0", 4}, "mag"));
    assert_true(span_is((struct span){0}, ""));
}

static void test_starts(void **state)
{
    assert_true(span_starts(span_of("#COLLOC --gpus=1"), "#COLLOC"));
    assert_false(span_starts(span_of("#COL"), "#COLLOC"));
    assert_true(span_starts((struct span){0}, ""));
    assert_false(span_starts((struct span){0}, "#"));
}

static void test_copy_says_when_it_cuts(void **state)
{
    char buffer[4] = "zzz";
    assert_true(span_copy(span_of("abc"), buffer, sizeof buffer));
    assert_string_equal(buffer, "abc");
    assert_false(span_copy(span_of("abcd"), buffer, sizeof buffer));
    assert_string_equal(buffer, "abc");
    assert_false(span_copy(span_of("a"), buffer, 0));
    assert_string_equal(buffer, "abc");
    assert_true(span_copy((struct span){0}, buffer, 1));
    assert_string_equal(buffer, "");
}

static void test_lines_of_any_ending(void **state)
{
    struct span text = span_of("one\n\r\n\ntwo\r\nlast"), line;
    static const char *const expected[] = {"one", "", "", "two", "last"};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_true(span_next_line(&text, &line));
        assert_span(line, expected[i]);
    }
    assert_false(span_next_line(&text, &line));
}

static void test_lines_of_little(void **state)
{
    struct span line, none = {0}, newline = span_of("\n"), nul = {"a\0b\n", 4};
    assert_false(span_next_line(&none, &line));
    assert_true(span_next_line(&newline, &line));
    assert_int_equal(line.size, 0);
    assert_false(span_next_line(&newline, &line));
    assert_true(span_next_line(&nul, &line));
    assert_int_equal(line.size, 3);
}

static void check_repaired(const char *text, const char *expected)
{
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%s", text);
    text_mend(buffer);
    assert_string_equal(buffer, expected);
}

static void check_clean(const char *text, const char *expected)
{
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%s", text);
    text_make_printable(buffer, '.');
    assert_string_equal(buffer, expected);
}

static void test_clean_text_controls_no_terminal(void **state)
{
    check_clean("", "");
    check_clean("\xc3\xa9 \xe2\x82\xac", "\xc3\xa9 \xe2\x82\xac");
    check_clean("a\033[2J\tb\nc\x7f", "a.[2J.b.c.");
    check_clean("\xc2\x9b[m", "..[m");
    check_clean("a\xe2\x80\xaez", "a...z");
    check_clean("\x9bK \xc2", "?K ?");
}

static void test_repaired_text_has_whole_characters(void **state)
{
    check_repaired("", "");
    check_repaired(
        "a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    check_repaired("a\xc3", "a?");
    check_repaired("a\xf0\x9f\x98", "a???");
    check_repaired("\xc3; more", "?; more");
    check_repaired("\xa9\xff", "??");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_is_compares_all_of_it),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_copy_says_when_it_cuts),
        cmocka_unit_test(test_lines_of_any_ending),
        cmocka_unit_test(test_lines_of_little),
        cmocka_unit_test(test_clean_text_controls_no_terminal),
        cmocka_unit_test(test_repaired_text_has_whole_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
