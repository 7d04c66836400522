/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work and whose energy: that it all adds up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "gpu/attribution.h"

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9)
        fail_msg("%g, not %g", value, expected);
}

static void test_one_alone_has_it_all(void **state)
{
    struct gpu_holder holders[] = {{.processes = 0}, {.processes = 2}};

    assert_false(attribution_weigh(holders, 2));
    assert_near(holders[0].weight, 0);
    assert_near(holders[1].weight, 1);
}

static void test_no_task_has_a_process(void **state)
{
    struct gpu_holder holders[] = {{.processes = 0}, {.processes = 0}};

    assert_false(attribution_weigh(holders, 2));
    assert_near(holders[0].weight + holders[1].weight, 0);
}

static void test_by_the_time_they_had_kernels(void **state)
{
    struct gpu_holder holders[] = {
        {.processes = 1, .sm_utilisation = reading_of(0.6)},
        {.processes = 3, .sm_utilisation = reading_of(0.2)},
        {.processes = 1, .sm_utilisation = reading_of(0)},
    };

    assert_false(attribution_weigh(holders, 3));
    assert_near(holders[0].weight, 0.75);
    assert_near(holders[1].weight, 0.25);
    assert_near(holders[2].weight, 0);
}

static void test_evenly_when_the_driver_does_not_tell(void **state)
{
    struct gpu_holder holders[] = {
        {.processes = 1, .sm_utilisation = reading_of(0.6)}, {.processes = 3}};

    assert_true(attribution_weigh(holders, 2));
    assert_near(holders[0].weight, 0.25);
    assert_near(holders[1].weight, 0.75);
}

static void test_evenly_when_it_tells_of_no_kernels(void **state)
{
    struct gpu_holder holders[] = {{.processes = 1, .sm_utilisation = reading_of(0)},
        {.processes = 1, .sm_utilisation = reading_of(0)}};

    assert_true(attribution_weigh(holders, 2));
    assert_near(holders[0].weight, 0.5);
}

static void test_evenly_under_mps(void **state)
{
    struct gpu_holder holders[] = {
        {.processes = 1, .is_mps = true, .sm_utilisation = reading_of(0.9)},
        {.processes = 1, .is_mps = true, .sm_utilisation = reading_of(0.1)}};

    assert_true(attribution_weigh(holders, 2));
    assert_near(holders[0].weight, 0.5);
    assert_near(holders[1].weight, 0.5);
}

static void test_energy_adds_up(void **state)
{
    double idle = 1.0 / 3;

    assert_near(300 * attribution_energy_share(0.75, 2, idle), 50 + 150);
    assert_near(300 * attribution_energy_share(0.25, 2, idle), 50 + 50);
    assert_near(300 * attribution_energy_share(0, 2, idle), 50);
    assert_near(attribution_energy_share(1, 1, 1), 1);
}

static struct gpu_sample drawing(double second, double power_w, double energy_j, size_t processes)
{
    return (struct gpu_sample){
        .at_us = (int64_t)(second * SECOND_US),
        .power_w = reading_of(power_w),
        .energy_j = reading_of(energy_j),
        .processes = {.valid = true, .count = processes},
    };
}

static void test_a_meter(void **state)
{
    struct gpu_meter meter = {0};
    struct gpu_sample looks[] = {drawing(1, 110, 1000, 1), drawing(3, 50, 1200, 0),
        drawing(4, 200, 1400, 1), drawing(5, 40, 1440, 1)};

    gpu_meter_take(&meter, &looks[0]);
    assert_false(meter.drawn_j.valid);
    assert_near(meter.span_s, 0);
    gpu_meter_take(&meter, &looks[1]);
    assert_near(meter.span_s, 2);
    assert_near(meter.drawn_j.value, 200);
    assert_near(meter.idle_w.value, 50);
    gpu_meter_take(&meter, &looks[2]);
    assert_near(meter.idle_part, 0.25);
    gpu_meter_take(&meter, &looks[3]);
    assert_near(meter.idle_w.value, 50);
    assert_near(meter.idle_part, 1);
}

static void test_power_fills_in_for_the_counter_and_is_not_counted_twice(void **state)
{
    struct gpu_meter meter = {0};
    struct gpu_sample looks[] = {drawing(1, 100, 1000, 1), drawing(2, 100, 0, 1),
        drawing(4, 100, 1330, 1), drawing(5, 100, 0, 1), drawing(6, 100, 1530, 1)};

    looks[1].energy_j = looks[3].energy_j = looks[3].power_w = READING_NONE;
    gpu_meter_take(&meter, &looks[0]);
    gpu_meter_take(&meter, &looks[1]);
    assert_near(meter.drawn_j.value, 100);
    assert_near(meter.drawn_span_s, 1);
    gpu_meter_take(&meter, &looks[2]);
    assert_near(meter.drawn_j.value, 230);
    assert_near(meter.drawn_span_s, 2);
    gpu_meter_take(&meter, &looks[3]);
    assert_false(meter.drawn_j.valid);
    gpu_meter_take(&meter, &looks[4]);
    assert_near(meter.drawn_j.value, 200);
    assert_near(meter.drawn_span_s, 2);
}

static void test_activity_may_be_older_than_the_look(void **state)
{
    struct gpu_meter meter = {0};
    static const struct {
        double look_s, measured_s, expected_s;
    } steps[] = {{1, 1, 0}, {2, 2, 1}, {3, 2, 0}, {4, 2, 0}, {5, 5, 3}};

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct gpu_sample look = drawing(steps[i].look_s, 100, 0, 1);
        look.smact = reading_of(0.5);
        look.activity.at_us = (int64_t)(steps[i].measured_s * SECOND_US);
        gpu_meter_take(&meter, &look);
        assert_near(meter.activity_span_s, steps[i].expected_s);
    }
}

static void test_a_meter_without_a_counter(void **state)
{
    struct gpu_meter meter = {0};
    struct gpu_sample looks[] = {drawing(1, 100, 0, 1), drawing(3, 50, 0, 1)};

    looks[0].energy_j = looks[1].energy_j = READING_NONE;
    gpu_meter_take(&meter, &looks[0]);
    gpu_meter_take(&meter, &looks[1]);
    assert_near(meter.drawn_j.value, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_alone_has_it_all),
        cmocka_unit_test(test_no_task_has_a_process),
        cmocka_unit_test(test_by_the_time_they_had_kernels),
        cmocka_unit_test(test_evenly_when_the_driver_does_not_tell),
        cmocka_unit_test(test_evenly_when_it_tells_of_no_kernels),
        cmocka_unit_test(test_evenly_under_mps),
        cmocka_unit_test(test_energy_adds_up),
        cmocka_unit_test(test_a_meter),
        cmocka_unit_test(test_power_fills_in_for_the_counter_and_is_not_counted_twice),
        cmocka_unit_test(test_activity_may_be_older_than_the_look),
        cmocka_unit_test(test_a_meter_without_a_counter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
