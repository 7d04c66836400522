/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of a recording: means over time, peaks, and energy that counters and idle power give. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "recorder/tally.h"

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9)
        fail_msg("%g, not %g", value, expected);
}

static struct gpu_sample at(double second, double smact, double power_w, double energy_j)
{
    return (struct gpu_sample){
        .at_us = (int64_t)(second * SECOND_US),
        .smact = reading_of(smact),
        .power_w = reading_of(power_w),
        .energy_j = reading_of(energy_j),
        .mem_used_bytes = reading_of((double)GIB),
        .processes.valid = true,
    };
}

static const struct presence nobody = {.our_memory_bytes = {0, true}};
static const struct presence we = {.ours = 1, .our_memory_bytes = {512 << 20, true}};

static void test_means_are_over_time(void **state)
{
    struct tally tally = {0};
    struct gpu_sample looks[] = {at(1, 0.9, 50, 0), at(2, 0.2, 100, 100), at(5, 0.6, 100, 400)};

    tally_take(&tally, &looks[0], &nobody);
    tally_take(&tally, &looks[1], &we);
    tally_take(&tally, &looks[2], &we);
    assert_near(mean_value(&tally.smact).value, (0.2 * 1 + 0.6 * 3) / 4);
    assert_near(mean_value(&tally.our_smact).value, (0.2 * 1 + 0.6 * 3) / 4);
    assert_near(tally.energy_j, 400);
    assert_near(tally.our_energy_j, 400);
    assert_near(tally.meter.idle_w.value, 50);
    assert_near(tally.our_peak_bytes.value, 512 << 20);
    assert_false(tally.with_others);
    assert_false(mean_value(&tally.smocc).valid);
}

static void test_who_has_just_gone_has_what_was_done(void **state)
{
    struct tally tally = {0};
    struct gpu_sample looks[] = {at(1, 0, 50, 0), at(2, 0.5, 100, 100), at(3, 0.5, 60, 180)};

    tally_take(&tally, &looks[0], &nobody);
    tally_take(&tally, &looks[1], &we);
    tally_take(&tally, &looks[2], &nobody);
    assert_near(tally.our_energy_j, 180);
    assert_near(mean_value(&tally.our_smact).value, 0.5);
}

/* The last look finds the power of a GPU that is idle again. */
static void test_power_is_energy_over_time(void **state)
{
    struct tally tally = {0};
    struct gpu_sample looks[] = {at(1, 0, 50, 0), at(2, 0.6, 229, 229), at(3, 0.6, 50, 458)};

    tally_take(&tally, &looks[0], &nobody);
    tally_take(&tally, &looks[1], &we);
    tally_take(&tally, &looks[2], &nobody);
    assert_near(mean_value(&tally.power_w).value, 229);
    assert_near(mean_value(&tally.smact).value, 0.6);
}

static void test_two_who_take_turns(void **state)
{
    struct tally tally = {0};
    const struct presence both = {.ours = 1,
        .others = 1,
        .our_memory_bytes = {GIB, true},
        .our_sm_utilisation = {0.3, true},
        .other_sm_utilisation = {0.1, true}};
    struct gpu_sample looks[] = {at(1, 0, 50, 0), at(2, 0.8, 250, 250)};

    tally_take(&tally, &looks[0], &nobody);
    tally_take(&tally, &looks[1], &both);
    assert_near(mean_value(&tally.our_smact).value, 0.6);
    assert_near(tally.our_energy_j, 25 + 0.75 * 200);
    assert_true(tally.with_others);
    assert_false(tally.is_estimated);
}

static void test_a_look_that_tells_nothing(void **state)
{
    struct tally tally = {0};
    struct gpu_sample looks[] = {at(1, 0.5, 50, 100), at(2, 0.5, 50, 200), at(3, 0.5, 50, 300)};

    looks[1].smact = looks[1].energy_j = looks[1].power_w = READING_NONE;
    for (int i = 0; i < 3; i++)
        tally_take(&tally, &looks[i], &we);
    assert_near(tally.energy_j, 200);
    assert_near(mean_value(&tally.smact).value, 0.5);
    assert_near(tally.smact.span_s, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means_are_over_time),
        cmocka_unit_test(test_who_has_just_gone_has_what_was_done),
        cmocka_unit_test(test_power_is_energy_over_time),
        cmocka_unit_test(test_two_who_take_turns),
        cmocka_unit_test(test_a_look_that_tells_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
