/* SPDX-License-Identifier: Apache-2.0 */
/* What measured delays teach: how fast, how far at most, and from how many users. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sharing/delay_factor.h"

/* A task reports its slowdown, `measured` for `predicted`, every 5 s. Returns the factor then. */
static double after_hours(struct delay_sum *sum, double hours, double measured, double predicted)
{
    for (int i = 0; i < hours * 720; i++)
        delay_sum_add(sum, 5, measured, predicted);
    return delay_sum_factor(sum);
}

static void an_hour_of_two_tasks_is_enough(void **state)
{
    struct delay_sum sum = {0, 0};
    assert_float_equal(delay_sum_factor(&sum), 1, 1e-6);
    assert_float_equal(after_hours(&sum, 2, 1.45, 1.3), 1.5, 0.05);
}

static void a_minute_moves_little(void **state)
{
    struct delay_sum sum = {0, 0};
    assert_float_equal(after_hours(&sum, 1 / 60.0, 1.6, 1.3), 1.13, 0.01);
}

static void a_factor_has_bounds(void **state)
{
    struct delay_sum slow = {0, 0}, fast = {0, 0};
    assert_float_equal(after_hours(&slow, 100, 1000, 1.3), DELAY_FACTOR_MAX, 1e-6);
    assert_float_equal(after_hours(&fast, 100, 1, 1.3), DELAY_FACTOR_MIN, 1e-6);
}

static void what_says_nothing_is_ignored(void **state)
{
    struct delay_sum sum = {0, 0};
    after_hours(&sum, 1, 1.5, 1.01);
    after_hours(&sum, 1, NAN, 1.3);
    after_hours(&sum, 1, 0, 1.3);
    after_hours(&sum, 1, 1.5, INFINITY);
    after_hours(&sum, 1, 1.5, NAN);
    delay_sum_add(&sum, 0, 1.5, 1.3);
    assert_float_equal(sum.predicted_s, 0, 1e-6);
    assert_float_equal(sum.measured_s, 0, 1e-6);
}

static void old_delays_are_forgotten(void **state)
{
    struct delay_sum sum = {0, 0};
    assert_float_equal(after_hours(&sum, 100, 1.6, 1.3), DELAY_FACTOR_MAX, 0.02);
    assert_float_equal(after_hours(&sum, 100, 1.3, 1.3), 1, 0.01);
}

static void one_of_several_users_moves_nothing(void **state)
{
    double liar[] = {2}, beside_honest[] = {2, 1}, beside_others[] = {1.4, 2, 1.3, 1.35};
    assert_float_equal(delay_factor_of_host(NULL, 0, false), 1, 1e-6);
    assert_float_equal(delay_factor_of_host(liar, 1, false), 1, 1e-6);
    assert_float_equal(delay_factor_of_host(beside_honest, 2, false), 1, 1e-6);
    assert_float_equal(delay_factor_of_host(beside_others, 4, false), 1.35, 1e-6);
}

static void what_users_agree_on_counts(void **state)
{
    double two[] = {1.8, 1.5}, other[] = {0.6, 0.8}, contrary[] = {0.5, 1.5},
           three[] = {1.5, 1.6, 1.7};
    assert_float_equal(delay_factor_of_host(two, 2, false), 1.5, 1e-6);
    assert_float_equal(delay_factor_of_host(other, 2, false), 0.8, 1e-6);
    assert_float_equal(delay_factor_of_host(contrary, 2, false), 1, 1e-6);
    assert_float_equal(delay_factor_of_host(three, 3, false), 1.5, 1e-6);
}

static void an_only_user_counts(void **state)
{
    double one[] = {1.5};
    assert_float_equal(delay_factor_of_host(one, 1, true), 1.5, 1e-6);
    assert_float_equal(delay_factor_of_host(one, 0, true), 1, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_of_two_tasks_is_enough),
        cmocka_unit_test(a_minute_moves_little),
        cmocka_unit_test(a_factor_has_bounds),
        cmocka_unit_test(what_says_nothing_is_ignored),
        cmocka_unit_test(old_delays_are_forgotten),
        cmocka_unit_test(one_of_several_users_moves_nothing),
        cmocka_unit_test(what_users_agree_on_counts),
        cmocka_unit_test(an_only_user_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
