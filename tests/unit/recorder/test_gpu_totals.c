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
#include "recorder/gpu_totals.h"

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

static const struct gpu_occupants no_process = {.our_memory_bytes = {0, true}};
static const struct gpu_occupants we = {.ours = 1, .our_memory_bytes = {512 << 20, true}};

static void test_means_are_over_time(void **state)
{
    struct gpu_totals totals = {0};
    struct gpu_sample samples[] = {at(1, 0.9, 50, 0), at(2, 0.2, 100, 100), at(5, 0.6, 100, 400)};

    gpu_totals_add(&totals, &samples[0], &no_process);
    gpu_totals_add(&totals, &samples[1], &we);
    gpu_totals_add(&totals, &samples[2], &we);
    assert_near(mean_value(&totals.smact).value, (0.2 * 1 + 0.6 * 3) / 4);
    assert_near(mean_value(&totals.our_smact).value, (0.2 * 1 + 0.6 * 3) / 4);
    assert_near(totals.energy_j, 400);
    assert_near(totals.our_energy_j, 400);
    assert_near(totals.meter.idle_w.value, 50);
    assert_near(totals.our_peak_bytes.value, 512 << 20);
    assert_false(totals.with_others);
    assert_false(mean_value(&totals.smocc).valid);
}

static void test_who_has_just_gone_has_what_was_done(void **state)
{
    struct gpu_totals totals = {0};
    struct gpu_sample samples[] = {at(1, 0, 50, 0), at(2, 0.5, 100, 100), at(3, 0.5, 60, 180)};

    gpu_totals_add(&totals, &samples[0], &no_process);
    gpu_totals_add(&totals, &samples[1], &we);
    gpu_totals_add(&totals, &samples[2], &no_process);
    assert_near(totals.our_energy_j, 180);
    assert_near(mean_value(&totals.our_smact).value, 0.5);
}

/* The last look finds the power of a GPU that is idle again. */
static void test_power_is_energy_over_time(void **state)
{
    struct gpu_totals totals = {0};
    struct gpu_sample samples[] = {at(1, 0, 50, 0), at(2, 0.6, 229, 229), at(3, 0.6, 50, 458)};

    gpu_totals_add(&totals, &samples[0], &no_process);
    gpu_totals_add(&totals, &samples[1], &we);
    gpu_totals_add(&totals, &samples[2], &no_process);
    assert_near(mean_value(&totals.power_w).value, 229);
    assert_near(mean_value(&totals.smact).value, 0.6);
}

static void test_two_who_take_turns(void **state)
{
    struct gpu_totals totals = {0};
    const struct gpu_occupants both = {.ours = 1,
        .others = 1,
        .our_memory_bytes = {GIB, true},
        .our_sm_utilisation = {0.3, true},
        .other_sm_utilisation = {0.1, true}};
    struct gpu_sample samples[] = {at(1, 0, 50, 0), at(2, 0.8, 250, 250)};

    gpu_totals_add(&totals, &samples[0], &no_process);
    gpu_totals_add(&totals, &samples[1], &both);
    assert_near(mean_value(&totals.our_smact).value, 0.6);
    assert_near(totals.our_energy_j, 25 + 0.75 * 200);
    assert_true(totals.with_others);
    assert_false(totals.is_estimated);
}

static void test_a_look_that_tells_nothing(void **state)
{
    struct gpu_totals totals = {0};
    struct gpu_sample samples[] = {at(1, 0.5, 50, 100), at(2, 0.5, 50, 200), at(3, 0.5, 50, 300)};

    samples[1].smact = samples[1].energy_j = samples[1].power_w = READING_NONE;
    for (int i = 0; i < 3; i++)
        gpu_totals_add(&totals, &samples[i], &we);
    assert_near(totals.energy_j, 200);
    assert_near(mean_value(&totals.smact).value, 0.5);
    assert_near(totals.smact.span_s, 1);
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
