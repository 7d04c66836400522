/* SPDX-License-Identifier: Apache-2.0 */
/* What a task is charged: the larger of activity and memory; what is unknown is not free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fairness/charge.h"

static double rate(bool is_whole, int n_tasks, struct reading smact, struct reading memory)
{
    double equal_part = n_tasks > 1 ? 1.0 / n_tasks : 1;
    return charge_rate(&(struct gpu_use){is_whole, equal_part, smact, memory, 0});
}

static void the_larger_of_activity_and_memory_counts(void **state)
{
    assert_float_equal(rate(false, 2, reading_of(0.9), reading_of(0.1)), 0.9, 1e-9);
    assert_float_equal(rate(false, 2, reading_of(0.1), reading_of(0.75)), 0.75, 1e-9);
    assert_float_equal(rate(false, 1, reading_of(0), reading_of(0.1)), 0.1, 1e-9);
}

static void a_gpu_to_itself_is_charged_whole(void **state)
{
    assert_float_equal(rate(true, 1, reading_of(0.1), reading_of(0.1)), 1, 1e-9);
}

static void unknown_is_an_equal_part(void **state)
{
    assert_float_equal(rate(false, 1, READING_NONE, READING_NONE), 1, 1e-9);
    assert_float_equal(rate(false, 4, READING_NONE, READING_NONE), 0.25, 1e-9);
    assert_float_equal(rate(false, 4, reading_of(0.05), READING_NONE), 0.25, 1e-9);
    assert_float_equal(rate(false, 4, READING_NONE, reading_of(0.5)), 0.5, 1e-9);
}

/* Drivers report more memory than the GPU has, where pages of the host count. */
static void never_more_than_the_gpu(void **state)
{
    assert_float_equal(rate(false, 2, reading_of(0.5), reading_of(1.4)), 1, 1e-9);
    assert_float_equal(rate(false, 2, reading_of(-1), reading_of(-1)), 0, 1e-9);
}

/* A promise keeps others off, whatever the task does with it. */
static void a_promise_is_charged(void **state)
{
    struct gpu_use use = {.smact = reading_of(0.1), .memory = reading_of(0.1), .promised = 0.8};
    assert_float_equal(charge_rate(&use), 0.8, 1e-9);
    use.smact = reading_of(0.9);
    assert_float_equal(charge_rate(&use), 0.9, 1e-9);
}

static void half_is_left_after_the_half_life(void **state)
{
    assert_float_equal(charge_decay(80, 7 * DAY_US, 7 * DAY_US), 40, 1e-9);
    assert_float_equal(charge_decay(80, 14 * DAY_US, 7 * DAY_US), 20, 1e-9);
    assert_float_equal(charge_decay(80, 0, 7 * DAY_US), 80, 1e-9);
    assert_float_equal(charge_decay(80, -DAY_US, 7 * DAY_US), 80, 1e-9);
    assert_float_equal(charge_decay(80, 4000 * DAY_US, DAY_US), 0, 1e-9);
}

/* Decay in steps is decay at once: it does not matter how often usage is recorded. */
static void steps_of_decay_add_up(void **state)
{
    double usage = 1000;
    for (int hour = 0; hour < 240; hour++)
        usage = charge_decay(usage, DAY_US / 24, 7 * DAY_US);
    assert_float_equal(usage, charge_decay(1000, 10 * DAY_US, 7 * DAY_US), 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_larger_of_activity_and_memory_counts),
        cmocka_unit_test(a_gpu_to_itself_is_charged_whole),
        cmocka_unit_test(unknown_is_an_equal_part),
        cmocka_unit_test(never_more_than_the_gpu),
        cmocka_unit_test(a_promise_is_charged),
        cmocka_unit_test(half_is_left_after_the_half_life),
        cmocka_unit_test(steps_of_decay_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
