/* SPDX-License-Identifier: Apache-2.0 */
/* Steps a second from what pages show at polls, also if a program writes false values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "preload/step_rate.h"

static struct step_reading page(uint64_t count, int64_t timed_us)
{
    return (struct step_reading){
        .source = PRELOAD_STEPS_CALLS, .unit = 1, .count = count, .timed_us = (uint64_t)timed_us};
}

static uint64_t note(struct step_rate *rate, struct step_reading reading, int64_t at_s)
{
    uint64_t timed_us;
    return step_rate_note(rate, &reading, at_s * SECOND_US, &timed_us);
}

static void test_a_steady_training(void **state)
{
    struct step_rate rate = {0};
    assert_false(step_rate_per_s(&rate, 0).valid);
    for (int s = 1; s <= 100; s++) {
        uint64_t steps = note(&rate, page((uint64_t)s * 8, s * SECOND_US), s);
        assert_int_equal(steps, s == 1 ? 0 : 8);
    }
    assert_int_equal(step_rate_per_s(&rate, 100 * SECOND_US).value, 8);
    for (int s = 101; s <= 160; s++) /* slower now */
        note(&rate, page(800 + (uint64_t)(s - 100) * 2, s * SECOND_US), s);
    assert_int_equal(step_rate_per_s(&rate, 160 * SECOND_US).value, 2);
}

static void test_silence_is_unknown(void **state)
{
    struct step_rate rate = {0};
    for (int s = 1; s <= 10; s++)
        note(&rate, page((uint64_t)s * 8, s * SECOND_US), s);
    assert_true(step_rate_per_s(&rate, 39 * SECOND_US).valid);
    assert_false(step_rate_per_s(&rate, 41 * SECOND_US).valid);
    for (int i = 1; i <= 10; i++) /* steps of a minute */
        note(&rate, page(100 + (uint64_t)i, (100 + 60 * i) * SECOND_US), 100 + 60 * i);
    assert_true(step_rate_per_s(&rate, 1000 * SECOND_US).valid);
}

static void test_another_unit_begins_anew(void **state)
{
    struct step_rate rate = {0};
    note(&rate, page(8, SECOND_US), 1);
    note(&rate, page(16, 2 * SECOND_US), 2);
    struct step_reading other = page(20, 3 * SECOND_US);
    other.unit = 2;
    assert_int_equal(note(&rate, other, 3), 0);
    assert_false(step_rate_per_s(&rate, 3 * SECOND_US).valid);
}

static void test_false_values(void **state)
{
    const struct step_reading false_values[] = {
        page(7, 2 * SECOND_US),          /* falls */
        page(9, 0),                      /* so does the time */
        page(UINT64_MAX, 2 * SECOND_US), /* too many */
        page(9, 500 * SECOND_US),        /* took longer than the time that passed */
        {.source = PRELOAD_STEPS_NONE, .count = 9},
        {.source = 77, .unit = 1},
    };
    for (size_t i = 0; i < sizeof false_values / sizeof *false_values; i++) {
        struct step_rate rate = {0};
        note(&rate, page(8, SECOND_US), 1);
        note(&rate, page(16, 2 * SECOND_US), 2);
        assert_true(step_rate_per_s(&rate, 2 * SECOND_US).valid);
        assert_int_equal(note(&rate, false_values[i], 3), 0);
        assert_false(step_rate_per_s(&rate, 3 * SECOND_US).valid);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_steady_training),
        cmocka_unit_test(test_silence_is_unknown),
        cmocka_unit_test(test_another_unit_begins_anew),
        cmocka_unit_test(test_false_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
