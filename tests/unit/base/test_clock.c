/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks: units and order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void test_monotonic_never_goes_back(void **state)
{
    int64_t before = clock_monotonic_us();
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_monotonic_us();
        assert_true(now >= before);
        before = now;
    }
}

static void test_wall_is_microseconds_since_1970(void **state)
{
    int64_t y2020 = 1577836800 * SECOND_US, y2200 = 7258118400 * SECOND_US;
    assert_true(clock_wall_us() > y2020);
    assert_true(clock_wall_us() < y2200);
    assert_int_equal(SECOND_US, 1000 * MS_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic_never_goes_back),
        cmocka_unit_test(test_wall_is_microseconds_since_1970),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
