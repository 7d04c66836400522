/* SPDX-License-Identifier: Apache-2.0 */
/* The fit of a host's constants: it finds those by which mixes were made, and judges itself by
 * mixes that it has not seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "calibration/calibration_file.h"
#include "calibration/simplex.h"
#include "sharing/gpu_kind.h"

/* A host on which sharing costs other things than where the built-in constants were measured. */
static const struct interference_constants host = {.switch_cost = 0.16,
    .cold_cost = 0.02,
    .launch_cost = 0.05,
    .weight_power = 0.5,
    .cache_cost = 0.2,
    .traffic_cost = 0.2};

static const struct demand trainings[] = {{.gract = 0.5, .smact = 0.3, .smocc = 0.1, .dram = 0.1},
    {.gract = 0.75, .smact = 0.55, .smocc = 0.2, .dram = 0.25},
    {.gract = 0.95, .smact = 0.85, .smocc = 0.3, .dram = 0.3}};

/* What the model says of a mix; measured speeds are off by `noise` of it, one up, the next down. */
static void add_mix(
    struct calibration_data *data, bool mps, bool is_held_out, const char *mix, double noise)
{
    struct calibration_mix *made = &data->mixes[data->n++];
    struct sharer sharers[CALIBRATION_TASKS_MAX] = {0};
    *made = (struct calibration_mix){.mps = mps, .is_held_out = is_held_out, .n = (int)strlen(mix)};
    for (int i = 0; i < made->n; i++) {
        made->demands[i] = trainings[mix[i] - '0'];
        sharers[i] = (struct sharer){.demand = made->demands[i], .mps = mps};
    }
    interference_solve(&host, 1, 1, sharers, made->n);
    for (int i = 0; i < made->n; i++)
        made->speeds[i] = sharers[i].speed * (1 + ((data->n + i) % 2 ? noise : -noise));
    struct demand now = interference_activity(&host, 1, 1, sharers, made->n);
    made->smact = reading_of(now.smact);
    made->dram = reading_of(now.dram);
}

static void make_data(struct calibration_data *data, bool mps, double noise)
{
    static const char *const fitted[] = {"0", "1", "2", "00", "11", "22", "01", "02", "12"};
    static const char *const held_out[] = {"012", "001", "0112"};
    for (size_t i = mps ? 0 : 3; i < ARRAY_SIZE(fitted); i++)
        add_mix(data, mps, false, fitted[i], noise);
    for (size_t i = 0; i < ARRAY_SIZE(held_out); i++)
        add_mix(data, mps, true, held_out[i], noise);
}

static void test_it_finds_the_constants_of_the_host(void **state)
{
    struct calibration_data data = {0};
    struct calibration_result result = {.why_no_mps = ""};
    make_data(&data, false, 0);
    make_data(&data, true, 0);
    calibration_result_fit(&result, &data);
    assert_float_equal(result.constants.switch_cost, host.switch_cost, 0.02);
    assert_float_equal(result.constants.cold_cost, host.cold_cost, 0.02);
    assert_float_equal(result.constants.launch_cost, host.launch_cost, 0.02);
    assert_float_equal(result.constants.cache_cost, host.cache_cost, 0.03);
    assert_float_equal(result.constants.weight_power, host.weight_power, 0.05);
    assert_float_equal(result.constants.traffic_cost, host.traffic_cost, 0.05);
    for (int mps = 0; mps < 2; mps++) {
        assert_true(result.error[mps].valid && result.error[mps].value < 0.01);
        assert_true(result.error_built_in[mps].value > 3 * result.error[mps].value);
    }
}

static void test_measurements_that_are_off_still_give_good_constants(void **state)
{
    struct calibration_data data = {0};
    struct calibration_result result = {.why_no_mps = ""};
    make_data(&data, false, 0.03);
    make_data(&data, true, 0.03);
    calibration_result_fit(&result, &data);
    assert_true(result.error[0].value < 0.05 && result.error[1].value < 0.05);
    assert_float_equal(result.constants.launch_cost, host.launch_cost, 0.08);
}

static void test_what_was_not_measured_stays_as_it_is(void **state)
{
    struct calibration_data data = {0};
    struct calibration_result result = {.why_no_mps = "no MPS"};
    struct interference_constants constants = interference_measured;
    make_data(&data, false, 0);
    for (int i = 0; i < data.n; i++)
        data.mixes[i].dram = READING_NONE;
    assert_false(calibration_fit(&data, true, &constants));
    assert_memory_equal(&constants, &interference_measured, sizeof constants);
    calibration_result_fit(&result, &data);
    assert_float_equal(result.constants.launch_cost, interference_measured.launch_cost, 0);
    assert_false(result.error[1].valid);
    assert_true(result.error[0].value < 0.01);
}

/* Prints the result's file, and reads it as `simulate` and the daemon do. */
static struct interference_constants read_again(const struct calibration_result *result)
{
    static struct gpu_kinds kinds;
    struct fault fault = {0};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    calibration_print(out, result);
    fclose(out);
    assert_int_equal(gpu_kinds_init(&kinds, &fault), 0);
    if (gpu_kinds_read(&kinds, (struct span){text, size}, "file", &fault) < 0)
        fail_msg("%s", fault.text);
    free(text);
    return kinds.constants.interference;
}

static void test_the_file_is_read_by_the_simulator(void **state)
{
    struct calibration_result result = {.gpu_name = "NVIDIA H200",
        .driver_version = "580",
        .date = "2026-11-22",
        .trainings = "a, b, c",
        .why_no_mps = "",
        .constants = host,
        .error = {{0.03, true}, {0.04, true}}};
    struct interference_constants constants = read_again(&result);
    assert_memory_equal(&constants, &host, sizeof host);
    result.why_no_mps = "nvidia-cuda-mps-control is not installed";
    constants = read_again(&result);
    assert_float_equal(constants.switch_cost, host.switch_cost, 0);
    assert_float_equal(constants.launch_cost, interference_measured.launch_cost, 0);
    assert_float_equal(constants.cache_cost, interference_measured.cache_cost, 0);
}

static double bent_valley(void *context, const double *point)
{
    double x = point[0], y = point[1];
    if (x < -2)
        return INFINITY;
    return (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x); /* Rosenbrock, 1960 */
}

static void test_the_simplex_reaches_a_minimum(void **state)
{
    double point[] = {-1.2, 1};
    assert_float_equal(simplex_minimise(bent_valley, NULL, 2, point), 0, 1e-3);
    assert_float_equal(point[0], 1, 0.05);
    assert_float_equal(point[1], 1, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_finds_the_constants_of_the_host),
        cmocka_unit_test(test_measurements_that_are_off_still_give_good_constants),
        cmocka_unit_test(test_what_was_not_measured_stays_as_it_is),
        cmocka_unit_test(test_the_file_is_read_by_the_simulator),
        cmocka_unit_test(test_the_simplex_reaches_a_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
