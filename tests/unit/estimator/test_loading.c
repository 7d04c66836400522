/* SPDX-License-Identifier: Apache-2.0 */
/* What a training waits for: its data, by what the host decodes, and the other GPUs' gradients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "estimator/loading.h"
#include "estimator/physics/gradient_exchange.h"

static const char *why;

/* The rate of a script's loader on a host that decodes 100 a second by one process, 1,200 by all
 * processors. */
static struct reading rate_with(struct export_loader loader, int gpus)
{
    struct export export = {.loader = loader};
    struct estimate_request request = {
        .export = &export, .gpus = gpus, .decoding = {.rate = 100, .most = 1200}};
    return loading_rate(&request, &why);
}

static struct export_loader jpegs(int64_t workers, double pixels)
{
    return (struct export_loader){true, LOADER_JPEG, workers, pixels};
}

static void test_workers_until_the_processors_are_busy(void **state)
{
    static const struct {
        int64_t workers;
        int gpus;
        double pixels, per_s;
    } cases[] = {
        {8, 1, LOADING_PIXELS, 800},
        {0, 1, LOADING_PIXELS, 100}, /* the training decodes */
        {64, 1, LOADING_PIXELS, 1200},
        {INT64_MAX, 1, LOADING_PIXELS, 1200},
        {8, 4, LOADING_PIXELS, 300},
        {2, 4, LOADING_PIXELS, 200},
        {8, 1, 2 * LOADING_PIXELS, 400},
        {8, 0, LOADING_PIXELS / 2, 1600},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reading rate = rate_with(jpegs(cases[i].workers, cases[i].pixels), cases[i].gpus);
        assert_true(rate.valid && !*why);
        assert_float_equal(rate.value, cases[i].per_s, 1e-6);
    }
}

static void test_what_is_not_known_says_why(void **state)
{
    assert_false(rate_with(jpegs(8, 5 * LOADING_PIXELS), 1).valid);
    assert_non_null(strstr(why, "another size"));
    assert_false(rate_with(jpegs(8, LOADING_PIXELS / 5), 1).valid);
    assert_non_null(strstr(why, "another size"));
    assert_false(rate_with((struct export_loader){.is_seen = true}, 1).valid);
    assert_non_null(strstr(why, "not known"));
    struct export export = {.loader = jpegs(8, LOADING_PIXELS)};
    struct estimate_request not_calibrated = {.export = &export},
                            half = {.export = &export, .decoding = {.rate = 100}};
    assert_false(loading_rate(&not_calibrated, &why).valid);
    assert_non_null(strstr(why, "colloc calibrate"));
    assert_false(loading_rate(&half, &why).valid);
}

/* Nothing to say of a summary, of a script without a loader, and of tensors. */
static void test_what_never_waits(void **state)
{
    struct estimate_request summary = {.decoding = {100, 1200}}, given = {.loader_rate = 7};
    assert_true(!loading_rate(&summary, &why).valid && !*why);
    assert_true(!rate_with((struct export_loader){0}, 1).valid && !*why);
    assert_true(!rate_with((struct export_loader){true, LOADER_TENSORS, 4, 0}, 1).valid && !*why);
    assert_float_equal(loading_rate(&given, &why).value, 7, 1e-9);
}

/* A script behind torchrun shows its processes, where the task does not name its GPUs. */
static void test_processes_that_the_script_shows(void **state)
{
    struct export export = {.loader = jpegs(8, LOADING_PIXELS), .processes = 4};
    struct estimate_request request = {.export = &export, .gpus = 1, .decoding = {100, 1200}};
    assert_float_equal(loading_rate(&request, &why).value, 300, 1e-9);
    request.gpus = 2;
    assert_float_equal(loading_rate(&request, &why).value, 600, 1e-9);
}

/* The user's own figure comes before what was seen. */
static void test_the_option_decides(void **state)
{
    struct export export = {.loader = jpegs(8, LOADING_PIXELS)};
    struct estimate_request request = {
        .export = &export, .loader_rate = 50, .decoding = {100, 1200}};
    assert_float_equal(loading_rate(&request, &why).value, 50, 1e-9);
}

static double wait_us(double bytes, double processes, double bytes_per_s, double backward_us)
{
    struct gradient_exchange exchange = {bytes, processes, bytes_per_s, backward_us};
    return gradient_exchange_wait_us(&exchange);
}

/* 3 GB on two GPUs: each sends 3 GB, at three quarters of the link's rate. */
static void test_an_exchange_is_hidden_but_for_its_last_bucket(void **state)
{
    double all_us = 3e9 / (0.75 * 300e9) * 1e6, slow_us = 3e9 / (0.75 * 16e9) * 1e6;
    double hidden = wait_us(3e9, 2, 300e9, 1e6);
    assert_true(hidden > 0 && hidden < all_us / 100);
    double open = wait_us(3e9, 2, 16e9, 100e3);
    assert_true(open > slow_us - 100e3 && open < slow_us);
    assert_float_equal(wait_us(3e9, 2, 16e9, 0), slow_us, 1e-3);
}

static void test_an_exchange_grows_with_all_but_the_rate(void **state)
{
    assert_true(wait_us(2e9, 4, 16e9, 1e4) > wait_us(2e9, 2, 16e9, 1e4));
    assert_true(wait_us(2e9, 2, 16e9, 1e4) > wait_us(1e9, 2, 16e9, 1e4));
    assert_true(wait_us(2e9, 2, 16e9, 1e4) > wait_us(2e9, 2, 64e9, 1e4));
    assert_true(wait_us(2e9, 2, 16e9, 1e4) > wait_us(2e9, 2, 16e9, 1e5));
    assert_true(wait_us(1e3, 2, 16e9, 1e4) < 1); /* one bucket, far from full */
}

static void test_without_an_exchange_there_is_no_wait(void **state)
{
    assert_true(wait_us(2e9, 1, 16e9, 1e4) == 0 && wait_us(2e9, 0, 16e9, 1e4) == 0);
    assert_true(wait_us(0, 2, 16e9, 1e4) == 0 && wait_us(-4, 2, 16e9, 1e4) == 0);
    assert_true(wait_us(2e9, 2, 0, 1e4) == 0); /* the rate is not known */
}

static void test_links(void **state)
{
    static const struct {
        const char *name;
        double bytes_per_s;
    } cases[] = {
        {"NVIDIA A100-SXM4-40GB", 300e9},
        {"NVIDIA A100 80GB PCIe", 32e9},
        {"NVIDIA H200", 450e9},
        {"NVIDIA H100 PCIe", 64e9},
        {"L40S", 32e9},
        {"Tesla T4", 16e9},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_float_equal(gpu_traits_link(gpu_traits_find(cases[i].name), cases[i].name),
            cases[i].bytes_per_s, 1);
    assert_float_equal(gpu_traits_link(gpu_traits_assumed(), NULL), 300e9, 1);
}

static struct estimate estimate_of(int gpus, enum parallel parallel, const char *gpu)
{
    static const char wide[] = "Linear-1 [-1, 8192] 67117056\nLinear-2 [-1, 8192] 67117056\n"
                               "Linear-3 [-1, 10] 81930\n";
    struct model *model;
    struct estimate estimate;
    assert_int_equal(model_parse(wide, strlen(wide), NULL, &model), 0);
    struct estimate_request request = {
        .model = model, .batch = 64, .gpu_kind = gpu, .gpus = gpus, .parallel = parallel};
    assert_int_equal(estimate_run("graph", &request, NULL, &estimate), 0);
    model_destroy(model);
    return estimate;
}

static void test_an_estimate_waits_for_the_other_gpus(void **state)
{
    struct estimate alone = estimate_of(1, PARALLEL_NOT_GIVEN, "NVIDIA H100 PCIe"),
                    both = estimate_of(2, PARALLEL_NOT_GIVEN, "NVIDIA H100 PCIe"),
                    near = estimate_of(2, PARALLEL_NOT_GIVEN, "NVIDIA H100 80GB HBM3"),
                    each = estimate_of(2, PARALLEL_NONE, "NVIDIA H100 PCIe");
    assert_true(both.step_us.value > 1.5 * alone.step_us.value);
    assert_float_equal(
        both.smact.value / alone.smact.value, alone.step_us.value / both.step_us.value, 1e-9);
    assert_non_null(strstr(both.note, "waits for the other GPUs for"));
    assert_true(near.smact.value > both.smact.value);
    assert_float_equal(each.smact.value, alone.smact.value, 1e-9);
    assert_null(strstr(each.note, "waits"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_until_the_processors_are_busy),
        cmocka_unit_test(test_what_is_not_known_says_why),
        cmocka_unit_test(test_what_never_waits),
        cmocka_unit_test(test_processes_that_the_script_shows),
        cmocka_unit_test(test_the_option_decides),
        cmocka_unit_test(test_an_exchange_is_hidden_but_for_its_last_bucket),
        cmocka_unit_test(test_an_exchange_grows_with_all_but_the_rate),
        cmocka_unit_test(test_without_an_exchange_there_is_no_wait),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_an_estimate_waits_for_the_other_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
