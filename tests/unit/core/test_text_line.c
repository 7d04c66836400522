/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows piece by piece, and ends where its buffer is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/text_line.h"

static void pieces_follow_each_other(void **state)
{
    char text[16] = "";
    struct text_line line = {text, sizeof text, 0};
    text_line_add(&line, "task %d", 12);
    text_line_add(&line, "%s", "");
    text_line_add(&line, ", %s", "held");
    assert_string_equal(text, "task 12, held");
    assert_int_equal(line.used, 13);
}

static void a_full_buffer_ends_the_text(void **state)
{
    char memory[8] = "", *text = memory;
    struct text_line line = {text, 4, 0};
    memory[4] = '!';
    text_line_add(&line, "abc");
    assert_string_equal(text, "abc");
    text_line_add(&line, "d");
    text_line_add(&line, "%s", "a longer one");
    assert_string_equal(text, "abc");
    assert_int_equal(line.used, 3);
    assert_int_equal(memory[4], '!');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(a_full_buffer_ends_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
