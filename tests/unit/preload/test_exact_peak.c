/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of a process from what it counts and what the driver reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/exact_peak.h"

static void test_a_peak_between_two_polls(void **state)
{
    struct exact_peak peak = {0};
    exact_peak_note(&peak, 100, 100, reading_of(150));
    assert_false(exact_peak_bytes(&peak, 100, 1000).valid);
    exact_peak_note(&peak, 100, 100, reading_of(150));
    assert_int_equal(exact_peak_bytes(&peak, 100, 1000).value, 150);
    exact_peak_note(&peak, 100, 400, reading_of(150));
    assert_int_equal(exact_peak_bytes(&peak, 400, 1000).value, 450);
}

static void test_a_process_that_moves_tells_nothing(void **state)
{
    struct exact_peak peak = {0};
    exact_peak_note(&peak, 100, 100, reading_of(150));
    exact_peak_note(&peak, 50, 100, reading_of(150)); /* it freed after the driver was asked */
    exact_peak_note(&peak, 50, 70, reading_of(150));
    assert_false(exact_peak_bytes(&peak, 100, 1000).valid);
}

static void test_unknown_and_impossible(void **state)
{
    struct exact_peak peak = {0};
    for (int i = 0; i < 3; i++)
        exact_peak_note(&peak, 100, 100, READING_NONE);
    assert_false(exact_peak_bytes(&peak, 100, 1000).valid);
    exact_peak_note(&peak, 100, 100, reading_of(99)); /* less than it counts */
    assert_false(exact_peak_bytes(&peak, 100, 1000).valid);
    exact_peak_note(&peak, 100, 100, reading_of(101));
    assert_true(exact_peak_bytes(&peak, 100, 1000).valid);
    assert_false(exact_peak_bytes(&peak, 1000, 1000).valid);
    assert_false(exact_peak_bytes(&peak, UINT64_MAX, 1000).valid);
    assert_false(exact_peak_bytes(&peak, 0, 1000).valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peak_between_two_polls),
        cmocka_unit_test(test_a_process_that_moves_tells_nothing),
        cmocka_unit_test(test_unknown_and_impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
