/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of the last 24 hours, hour by hour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/day_sum.h"

static void test_what_is_older_than_a_day_does_not_count(void **state)
{
    struct day_sum sum = {0};
    assert_int_equal(day_sum_get(&sum, 0), 0);
    assert_int_equal(day_sum_get(&sum, 1000 * DAY_US), 0);
    day_sum_add(&sum, 10 * HOUR_US + 30 * MINUTE_US, 5);
    day_sum_add(&sum, 11 * HOUR_US + 10 * MINUTE_US, 7);
    assert_int_equal(day_sum_get(&sum, 11 * HOUR_US + 10 * MINUTE_US), 12);
    assert_int_equal(day_sum_get(&sum, DAY_US + 10 * HOUR_US - 1), 12);
    assert_int_equal(day_sum_get(&sum, DAY_US + 10 * HOUR_US), 7);
    assert_int_equal(day_sum_get(&sum, DAY_US + 11 * HOUR_US - 1), 7);
    assert_int_equal(day_sum_get(&sum, DAY_US + 11 * HOUR_US), 0);
    assert_int_equal(day_sum_get(&sum, 100 * DAY_US), 0);
}

static void test_a_sum_of_each_hour(void **state)
{
    struct day_sum sum = {0};
    for (int hour = 0; hour < 100; hour++) {
        day_sum_add(&sum, hour * HOUR_US, 1);
        assert_int_equal(day_sum_get(&sum, hour * HOUR_US), hour < 24 ? hour + 1 : 24);
    }
    day_sum_add(&sum, 1000 * HOUR_US, 3);
    assert_int_equal(day_sum_get(&sum, 1000 * HOUR_US), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_older_than_a_day_does_not_count),
        cmocka_unit_test(test_a_sum_of_each_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
