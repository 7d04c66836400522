/* SPDX-License-Identifier: Apache-2.0 */
/* Readings: an invalid one never looks like a value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/reading.h"

static void test_none_is_not_zero(void **state)
{
    assert_false(READING_NONE.valid);
    assert_true(reading_of(0).valid);
}

static void test_or_answers_only_for_none(void **state)
{
    assert_true(reading_or(reading_of(0.83), -1) == 0.83);
    assert_true(reading_or(reading_of(0), -1) == 0);
    assert_true(reading_or(READING_NONE, -1) == -1);
}

static void test_bytes_are_exact(void **state)
{
    int64_t bytes = ((int64_t)1 << 53) - 1;
    assert_int_equal((int64_t)reading_or(reading_of((double)bytes), 0), bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_is_not_zero),
        cmocka_unit_test(test_or_answers_only_for_none),
        cmocka_unit_test(test_bytes_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
