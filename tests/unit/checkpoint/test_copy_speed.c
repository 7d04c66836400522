/* SPDX-License-Identifier: Apache-2.0 */
/* Learned seconds per GiB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "checkpoint/copy_speed.h"

static void test_default_is_an_h200(void **state)
{
    struct copy_speed speed = copy_speed_default();
    int64_t us = copy_speed_expect_us(&speed, COPY_TO_HOST, 48 * GIB);
    assert_in_range(us, 30 * SECOND_US, 35 * SECOND_US);
    us = copy_speed_expect_us(&speed, COPY_TO_GPU, 48 * GIB);
    assert_in_range(us, 9 * SECOND_US, 11 * SECOND_US);
}

/* With the context, which goes by the driver. */
static void test_default_of_the_carrier(void **state)
{
    struct copy_speed speed = copy_speed_default();
    assert_in_range(
        copy_speed_expect_us(&speed, CARRY_TO_HOST, 66 * GIB / 10), 850 * MS_US, 950 * MS_US);
    assert_in_range(
        copy_speed_expect_us(&speed, CARRY_TO_GPU, 66 * GIB / 10), 480 * MS_US, 560 * MS_US);
}

static void test_learns_what_it_sees(void **state)
{
    struct copy_speed speed = copy_speed_default();
    for (int i = 0; i < 20; i++)
        copy_speed_learn(&speed, COPY_TO_HOST, 10 * GIB, 40 * SECOND_US);
    assert_float_equal(speed.s_per_gib[COPY_TO_HOST], 4.0, 0.01);
    assert_int_equal(speed.learned[COPY_TO_HOST], 20);
    assert_float_equal(speed.s_per_gib[COPY_TO_GPU], 0.20, 1e-9);
}

/* A copy that was held up, or a process that lies about it, is no reason to give up slots of all
 * users. */
static void test_one_copy_moves_little(void **state)
{
    struct copy_speed speed = copy_speed_default();
    double before = speed.s_per_gib[CARRY_TO_HOST];
    copy_speed_learn(&speed, CARRY_TO_HOST, 10 * GIB, 300 * SECOND_US);
    assert_true(speed.s_per_gib[CARRY_TO_HOST] < 2 * before);
    copy_speed_learn(&speed, CARRY_TO_HOST, 10 * GIB, 1);
    assert_true(speed.s_per_gib[CARRY_TO_HOST] > before / 2);
}

static void test_small_and_impossible_copies_teach_nothing(void **state)
{
    struct copy_speed speed = copy_speed_default();
    copy_speed_learn(&speed, COPY_TO_HOST, GIB, 40 * SECOND_US);
    copy_speed_learn(&speed, COPY_TO_HOST, 10 * GIB, 0);
    copy_speed_learn(&speed, COPY_TO_HOST, 10 * GIB, -5);
    assert_int_equal(speed.learned[COPY_TO_HOST], 0);
    copy_speed_learn(&speed, COPY_TO_HOST, 10 * GIB, INT64_MAX);
    assert_true(speed.s_per_gib[COPY_TO_HOST] < 50);
}

static void test_the_limit_is_far_beyond_what_is_expected(void **state)
{
    struct copy_speed speed = copy_speed_default();
    for (int64_t bytes = 0; bytes < 200 * GIB; bytes += 25 * GIB)
        assert_true(copy_speed_limit_us(&speed, COPY_TO_HOST, bytes) >=
                    9 * copy_speed_expect_us(&speed, COPY_TO_HOST, bytes));
}

static void test_is_read_as_written(void **state)
{
    struct copy_speed speed = copy_speed_default();
    char text[256];
    copy_speed_learn(&speed, COPY_TO_GPU, 10 * GIB, 5 * SECOND_US);
    copy_speed_learn(&speed, CARRY_TO_HOST, 10 * GIB, 1 * SECOND_US);
    size_t n = copy_speed_write(&speed, text, sizeof text);
    assert_true(n > 0);
    struct copy_speed again = copy_speed_read((struct span){text, n});
    assert_float_equal(again.s_per_gib[COPY_TO_GPU], speed.s_per_gib[COPY_TO_GPU], 1e-4);
    assert_int_equal(again.learned[COPY_TO_GPU], 1);
    assert_float_equal(again.s_per_gib[CARRY_TO_HOST], 0.047 + 0.3 * (0.1 - 0.047), 1e-4);
    assert_int_equal(again.learned[CARRY_TO_HOST], 1);
    assert_int_equal(again.learned[COPY_TO_HOST], 0);
    assert_int_equal(copy_speed_write(&speed, text, 5), 0);
}

static void test_a_damaged_file_is_the_default(void **state)
{
    struct copy_speed speed = copy_speed_read(
        span_of("to-host nan 3\nto-gpu -1 2\nto-host 0.5\nelse 1 1\n\nto-gpu 1e9 1"));
    assert_float_equal(speed.s_per_gib[COPY_TO_HOST], 0.67, 1e-9);
    assert_float_equal(speed.s_per_gib[COPY_TO_GPU], 0.20, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_is_an_h200),
        cmocka_unit_test(test_default_of_the_carrier),
        cmocka_unit_test(test_learns_what_it_sees),
        cmocka_unit_test(test_one_copy_moves_little),
        cmocka_unit_test(test_small_and_impossible_copies_teach_nothing),
        cmocka_unit_test(test_the_limit_is_far_beyond_what_is_expected),
        cmocka_unit_test(test_is_read_as_written),
        cmocka_unit_test(test_a_damaged_file_is_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
