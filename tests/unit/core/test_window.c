/* SPDX-License-Identifier: Apache-2.0 */
/* The monitoring window: which entries count, and the figures calculated from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/window.h"

static void assert_mean(const struct window *window, int64_t since_us, int enough, double expected)
{
    struct reading mean = window_level(window, WINDOW_MEAN, since_us, enough);
    assert_true(mean.valid);
    assert_float_equal(mean.value, expected, 1e-12);
}

static void nothing_is_not_zero(void **state)
{
    struct window window = {0};
    assert_false(window_level(&window, WINDOW_MEAN, 0, 1).valid);
    assert_int_equal(window_add(&window, 1, 90, READING_NONE), 0);
    assert_false(window_level(&window, WINDOW_MEAN, 0, 1).valid);
    window_fini(&window);
}

static void forgets_what_is_older_than_the_window(void **state)
{
    struct window window = {0};
    for (int i = 0; i < 500; i++)
        assert_int_equal(window_add(&window, i, 90, reading_of(i)), 0);
    assert_int_equal(window.count, 90);
    assert_mean(&window, 0, 1, (410.0 + 499.0) / 2);
    assert_int_equal(window_add(&window, 10000, 90, reading_of(7)), 0);
    assert_int_equal(window.count, 1);
    assert_mean(&window, 0, 1, 7);
    window_fini(&window);
}

static void entries_survive_growing_and_moving(void **state)
{
    struct window window = {0};
    for (int i = 0; i < 100; i++) /* they have been moved to the front */
        window_add(&window, i, 20, reading_of(i));
    for (int i = 100; i < 200; i++)
        window_add(&window, i, 1000, reading_of(i));
    assert_mean(&window, 0, 1, (80.0 + 199.0) / 2);
    window_add(
        &window, 1105, 1000, reading_of(0)); /* the oldest are still in front: up to 105 they go */
    assert_int_equal(window.count, 95);
    window_fini(&window);
}

/* Of every third sample the value is unknown. */
static void the_mean_is_of_the_last_samples_however_long_it_runs(void **state)
{
    enum { LENGTH = 37 };
    struct window window = {0};
    for (int now = 0; now < 5000; now++) {
        assert_int_equal(
            window_add(&window, now, LENGTH, now % 3 ? reading_of(now) : READING_NONE), 0);
        int since = now - now % LENGTH, n = 0;
        double sum = 0;
        for (int i = now - LENGTH + 1; i <= now; i++) {
            if (i < since || i % 3 == 0)
                continue;
            sum += i;
            n++;
        }
        struct reading mean = window_mean_since(&window, since, 1);
        assert_int_equal(mean.valid, n > 0);
        if (n > 0)
            assert_float_equal(mean.value, sum / n, 1e-9);
    }
    window_fini(&window);
}

static void a_recent_mix_counts_once_there_is_enough_of_it(void **state)
{
    struct window window = {0};
    for (int i = 0; i < 10; i++)
        window_add(&window, i, 90, reading_of(i < 8 ? 1 : 0));
    assert_mean(&window, 8, 2, 0);
    assert_mean(&window, 8, 3, 0.8);
    window_fini(&window);
}

static void invalid_entries_do_not_count_and_the_newest_decides(void **state)
{
    struct window window = {0};
    window_add(&window, 1, 90, reading_of(0.2));
    window_add(&window, 2, 90, READING_NONE);
    assert_false(window_level(&window, WINDOW_MEAN, 0, 1).valid);
    assert_false(window_recent(&window, WINDOW_MEAN, 0, 1).valid);
    window_add(&window, 3, 90, reading_of(0.4));
    assert_mean(&window, 0, 1, 0.3);
    assert_false(window_recent(&window, WINDOW_MEAN, 0, 3).valid);
    assert_float_equal(window_recent(&window, WINDOW_MEAN, 3, 1).value, 0.4, 0);
    window_fini(&window);
}

static void a_mean_of_equal_values_is_that_value(void **state)
{
    struct window window = {0};
    for (int i = 0; i < 90; i++) {
        window_add(&window, i, 90, reading_of(0.8));
        assert_mean(&window, 0, 1, 0.8);
    }
    window_fini(&window);
}

static void p95_leaves_the_highest_twentieth_out(void **state)
{
    struct window window = {0};
    for (int i = 0; i < 100; i++)
        window_add(&window, i, 1000, reading_of((i * 37) % 100));
    assert_float_equal(window_level(&window, WINDOW_P95, 0, 1).value, 94, 0);
    assert_float_equal(window_level(&window, WINDOW_P95, 99, 1).value, 63, 0);
    assert_false(window_level(&(struct window){0}, WINDOW_P95, 0, 1).valid);
    window_fini(&window);
}

static void ewma_halves_with_each_sixth_of_the_window(void **state)
{
    struct window window = {0};
    window_add(&window, 0, 600, reading_of(1));
    window_add(&window, 100, 600, reading_of(0));
    assert_float_equal(window_level(&window, WINDOW_EWMA, 0, 1).value, 0.5 / 1.5, 1e-12);
    window_add(&window, 300, 600, READING_NONE);
    assert_false(window_level(&window, WINDOW_EWMA, 0, 1).valid);
    window_add(&window, 300, 600, reading_of(0));
    assert_float_equal(
        window_level(&window, WINDOW_EWMA, 0, 1).value, 0.125 / (0.125 + 0.25 + 1), 1e-12);
    window_fini(&window);
}

static void a_slope_is_per_second(void **state)
{
    struct window window = {0};
    assert_false(window_slope_per_s(&window).valid);
    window_add(&window, 5000000, 90000000, reading_of(0.5));
    assert_false(window_slope_per_s(&window).valid);
    window_add(&window, 6000000, 90000000, READING_NONE);
    window_add(&window, 7000000, 90000000, reading_of(0.7));
    assert_float_equal(window_slope_per_s(&window).value, 0.1, 1e-12);
    window_add(&window, 9000000, 90000000, reading_of(0.9));
    assert_float_equal(window_slope_per_s(&window).value, 0.1, 1e-12);
    window_fini(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_not_zero),
        cmocka_unit_test(forgets_what_is_older_than_the_window),
        cmocka_unit_test(entries_survive_growing_and_moving),
        cmocka_unit_test(the_mean_is_of_the_last_samples_however_long_it_runs),
        cmocka_unit_test(a_recent_mix_counts_once_there_is_enough_of_it),
        cmocka_unit_test(invalid_entries_do_not_count_and_the_newest_decides),
        cmocka_unit_test(a_mean_of_equal_values_is_that_value),
        cmocka_unit_test(p95_leaves_the_highest_twentieth_out),
        cmocka_unit_test(ewma_halves_with_each_sixth_of_the_window),
        cmocka_unit_test(a_slope_is_per_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
