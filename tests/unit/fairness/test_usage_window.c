/* SPDX-License-Identifier: Apache-2.0 */
/* The rolling window of charges: its edges, jumps of the clock, other lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fairness/usage_window.h"

#define HOUR   INT64_C(3600000000)
#define LENGTH (32 * HOUR) /* buckets of an hour */

static struct usage_window charged_at(int64_t time_us, double charge_us)
{
    const struct usage_window none = {0};
    struct usage_window window = usage_window_at(&none, LENGTH, time_us);
    usage_window_charge(&window, charge_us);
    return window;
}

static double sum_at(const struct usage_window *window, int64_t length_us, int64_t now_us)
{
    struct usage_window moved = usage_window_at(window, length_us, now_us);
    return usage_window_sum(&moved);
}

static void an_empty_window_has_no_charges(void **state)
{
    const struct usage_window none = {0};
    struct usage_window no_length = none;
    assert_float_equal(sum_at(&none, LENGTH, 5 * HOUR), 0, 0);
    assert_int_equal(usage_window_falls_below(&none, 1), 0);
    usage_window_charge(&no_length, 7);
    assert_float_equal(usage_window_sum(&no_length), 0, 0);
}

static void a_charge_leaves_with_its_bucket(void **state)
{
    const struct usage_window window = charged_at(10 * HOUR + HOUR / 3, 100.9);
    assert_float_equal(sum_at(&window, LENGTH, 10 * HOUR + HOUR / 2), 100, 0);
    assert_float_equal(sum_at(&window, LENGTH, 42 * HOUR - 1), 100, 0);
    assert_float_equal(sum_at(&window, LENGTH, 42 * HOUR), 0, 0);
    assert_float_equal(sum_at(&window, LENGTH, 1000000 * HOUR), 0, 0);
}

static void steps_of_the_clock_change_nothing(void **state)
{
    struct usage_window window = charged_at(0, 100);
    for (int64_t time_us = 0; time_us < 32 * HOUR; time_us += HOUR / 7)
        window = usage_window_at(&window, LENGTH, time_us);
    assert_float_equal(usage_window_sum(&window), 100, 0);
    assert_float_equal(sum_at(&window, LENGTH, 32 * HOUR), 0, 0);
}

static void a_charge_of_the_future_is_one_of_now(void **state)
{
    const struct usage_window window = charged_at(100 * HOUR, 100);
    const struct usage_window back = usage_window_at(&window, LENGTH, 20 * HOUR);
    assert_float_equal(sum_at(&back, LENGTH, 52 * HOUR - 1), 100, 0);
    assert_float_equal(sum_at(&back, LENGTH, 52 * HOUR), 0, 0);
}

static void the_limit_is_met_when_enough_has_left(void **state)
{
    struct usage_window window = charged_at(10 * HOUR, 30);
    window = usage_window_at(&window, LENGTH, 12 * HOUR);
    usage_window_charge(&window, 50);
    window = usage_window_at(&window, LENGTH, 20 * HOUR);
    usage_window_charge(&window, 20);
    assert_int_equal(usage_window_falls_below(&window, 101), 20 * HOUR);
    assert_int_equal(usage_window_falls_below(&window, 100), 42 * HOUR);
    assert_int_equal(usage_window_falls_below(&window, 71), 42 * HOUR);
    assert_int_equal(usage_window_falls_below(&window, 70), 44 * HOUR);
    assert_int_equal(usage_window_falls_below(&window, 20), 52 * HOUR);
    assert_float_equal(sum_at(&window, LENGTH, 44 * HOUR), 20, 0);
}

static void windows_add_up(void **state)
{
    const struct usage_window one = charged_at(10 * HOUR, 30), other = charged_at(12 * HOUR, 50);
    struct usage_window sum = usage_window_at(&one, LENGTH, 12 * HOUR);
    usage_window_add(&sum, &other);
    assert_float_equal(usage_window_sum(&sum), 80, 0);
    assert_int_equal(usage_window_falls_below(&sum, 51), 42 * HOUR);
}

static void another_length_keeps_what_is_within_both(void **state)
{
    struct usage_window window = charged_at(10 * HOUR, 30);
    window = usage_window_at(&window, LENGTH, 30 * HOUR);
    usage_window_charge(&window, 50);
    assert_float_equal(sum_at(&window, LENGTH / 4, 31 * HOUR), 50, 0);
    assert_float_equal(sum_at(&window, 10 * LENGTH, 200 * HOUR), 80, 0);
    assert_float_equal(sum_at(&window, 0, 31 * HOUR), 0, 0);
}

/* What a damaged log holds. */
static void extremes_are_bounded(void **state)
{
    struct usage_window window = {.length_us = 1, .at_us = INT64_C(1) << 60};
    for (int i = 0; i < USAGE_BUCKETS; i++)
        window.charged_us[i] = 1e18;
    struct usage_window moved = usage_window_at(&window, 2 * LENGTH, INT64_C(1) << 60);
    assert_float_equal(usage_window_sum(&moved), 1e18, 0);
    usage_window_add(&moved, &window);
    assert_float_equal(moved.charged_us[0], 1e18, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_window_has_no_charges),
        cmocka_unit_test(a_charge_leaves_with_its_bucket),
        cmocka_unit_test(steps_of_the_clock_change_nothing),
        cmocka_unit_test(a_charge_of_the_future_is_one_of_now),
        cmocka_unit_test(the_limit_is_met_when_enough_has_left),
        cmocka_unit_test(windows_add_up),
        cmocka_unit_test(another_length_keeps_what_is_within_both),
        cmocka_unit_test(extremes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
