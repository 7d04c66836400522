/* SPDX-License-Identifier: Apache-2.0 */
/* The roofline, and the tables that were learned: what has to hold whatever the data said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "estimator/estimator_table.h"
#include "estimator/physics/quantile.h"
#include "estimator/physics/residual.h"

static const char tiny[] = "Linear-1 [-1, 32] 1056\nReLU-2 [-1, 32] 0\nLinear-3 [-1, 10] 330\n";
static const char large[] =
    "Conv2d-1 [-1, 256, 112, 112] 6912\nBatchNorm2d-2 [-1, 256, 112, 112] 512\n"
    "Conv2d-3 [-1, 256, 112, 112] 589824\nLinear-4 [-1, 10] 2570\n";

static struct physics ask(
    const char *text, int64_t batch, const char *optimizer, const char *precision, const char *gpu)
{
    struct model *model;
    struct physics physics;
    struct fault fault;
    struct estimate estimate = {.note = ""};
    assert_int_equal(model_parse(text, strlen(text), NULL, &model), 0);
    struct estimate_request request = {
        .model = model, .batch = batch, .optimizer = optimizer_parse(optimizer), .gpu_kind = gpu};
    assert_int_equal(precision_parse("precision", precision, NULL, &request.precision), 0);
    struct physics_constants constants = physics_constants_of(gpu);
    constants.rates = (struct activity_rates){
        .launch_us = 10, .matrix_share = 0.4, .bandwidth_share = 0.7};
    assert_int_equal(physics_run_with(&constants, &request, &fault, &estimate, &physics), 0);
    model_destroy(model);
    return physics;
}

static struct activity activity(
    const char *text, int64_t batch, const char *precision, const char *gpu)
{
    struct activity a = ask(text, batch, "adam", precision, gpu).activity;
    assert_true(a.step_us > 0 && a.smact > 0 && a.smact <= 1 && a.dram > 0 && a.dram <= 1);
    return a;
}

static void test_ranks(void **state)
{
    struct activity small = activity(tiny, 8, "fp32", "NVIDIA H200"),
                    big = activity(large, 64, "fp32", "NVIDIA H200");
    assert_true(small.smact < 0.1 && big.smact > 0.8);
    assert_true(small.step_us < 2000 && big.step_us > 10 * small.step_us);
}

static void test_grows_with_work(void **state)
{
    double last = 0;
    for (int64_t batch = 32; batch <= 1024; batch *= 2) {
        double step_us = activity(large, batch, "fp32", "NVIDIA H200").step_us;
        assert_true(step_us > 1.5 * last);
        last = step_us;
    }
}

static void test_faster_hardware_and_formats(void **state)
{
    assert_true(activity(large, 64, "amp", "NVIDIA H200").step_us <
                activity(large, 64, "fp32", "NVIDIA H200").step_us);
    assert_true(activity(large, 64, "fp32", "NVIDIA H200").step_us <
                activity(large, 64, "fp32", "Tesla V100-SXM2-16GB").step_us);
}

static void test_correction_is_bounded(void **state)
{
    static const char *const texts[] = {tiny, large};
    for (size_t i = 0; i < 2; i++) {
        for (int64_t batch = 1; batch <= 4096; batch *= 4) {
            struct physics physics = ask(texts[i], batch, "sgd", batch % 8 ? "fp32" : "amp", NULL);
            double features[RESIDUAL_FEATURES], factor = residual_factor(&physics);
            residual_features(&physics, features);
            for (int k = 0; k < RESIDUAL_FEATURES; k++)
                assert_true(isfinite(features[k]));
            assert_true(factor >= 0.5 - 1e-9 && factor <= 2 + 1e-9);
        }
    }
}

static void test_quantiles_are_in_order(void **state)
{
    for (int kind = 0; kind < EVIDENCE_KINDS; kind++) {
        struct estimate e = {.bytes = {3e9, true}, .evidence = (enum evidence)kind};
        struct physics physics = ask(large, 64, "sgd", kind % 2 ? "fp32" : "amp", NULL);
        physics.context_bytes = 5e8;
        quantiles_set(&e, &physics);
        assert_true(
            e.p50_bytes.valid == e.p99_bytes.valid && e.p90_bytes.valid == e.p99_bytes.valid);
        assert_true(!e.p50_bytes.valid || (e.p50_bytes.value <= e.p90_bytes.value &&
                                              e.p90_bytes.value <= e.p99_bytes.value));
        assert_true(!e.p50_bytes.valid || e.p50_bytes.value > 5e8);
    }
    struct estimate none = {.evidence = EVIDENCE_SUMMARY};
    struct physics physics = ask(large, 64, "sgd", "fp32", NULL);
    quantiles_set(&none, &physics);
    assert_false(none.p99_bytes.valid);
}

static struct estimate quantiles_of(enum evidence evidence, const struct physics *physics)
{
    struct estimate estimate = {.bytes = {3e9, true}, .evidence = evidence};
    quantiles_set(&estimate, physics);
    assert_true(estimate.p99_bytes.valid);
    return estimate;
}

/* The more is known, the less is reserved. A script's export is as good as another without
 * convolutions; with them, scripts are less like what the quantiles were calibrated on. */
static void test_quantiles_follow_the_evidence(void **state)
{
    static const enum evidence better[] = {
        EVIDENCE_DOUBTFUL, EVIDENCE_DECLARED, EVIDENCE_ONE_RUN, EVIDENCE_EXPORT, EVIDENCE_SAME_RUN};
    struct physics physics = {.conv_share = 0.9, .context_bytes = 5e8};
    for (size_t i = 1; i < sizeof better / sizeof *better; i++)
        assert_true(quantiles_of(better[i], &physics).p99_bytes.value <
                    quantiles_of(better[i - 1], &physics).p99_bytes.value);
    assert_true(quantiles_of(EVIDENCE_SCRIPT, &physics).p99_bytes.value >
                quantiles_of(EVIDENCE_EXPORT, &physics).p99_bytes.value);
    physics.conv_share = 0;
    assert_true(quantiles_of(EVIDENCE_SCRIPT, &physics).p99_bytes.value ==
                quantiles_of(EVIDENCE_EXPORT, &physics).p99_bytes.value);
}

/* With known kernels the interval follows from how steady the replay is. */
static void test_unsteady_replays_reserve_more(void **state)
{
    struct physics steady = {.conv_share = 0.9},
                   unsteady = {.conv_share = 0.9, .replay_range = 0.1};
    struct estimate near = quantiles_of(EVIDENCE_KERNELS, &steady),
                    far = quantiles_of(EVIDENCE_KERNELS, &unsteady);
    assert_true(near.p99_bytes.value < 1.03 * 3e9);
    assert_true(far.p99_bytes.value > near.p99_bytes.value);
    assert_true(quantiles_of(EVIDENCE_EXPORT, &steady).p99_bytes.value ==
                quantiles_of(EVIDENCE_EXPORT, &unsteady).p99_bytes.value);
}

/* What cudnn.benchmark takes is not known: twice the memory has to be within P99. */
static void test_tried_kernels_reserve_more(void **state)
{
    struct physics physics = {.conv_share = 0.9, .tries_kernels = true, .context_bytes = 8e8};
    physics.footprint.reserved = 3.6e9;
    struct estimate tried = quantiles_of(EVIDENCE_SCRIPT, &physics);
    assert_true(tried.p99_bytes.value > 2 * 3e9);
    physics.tries_kernels = false;
    struct estimate untried = quantiles_of(EVIDENCE_SCRIPT, &physics);
    assert_true(untried.p99_bytes.value < 1.2 * 3e9);
    assert_true(tried.untried_p99_bytes.value == untried.p99_bytes.value);
    assert_false(untried.untried_p99_bytes.valid);
}

/* A vision transformer has one convolution; a network whose work is not known may have many. */
static void test_tried_kernels_of_few_convolutions(void **state)
{
    struct physics physics = {.conv_share = 0.03,
        .macs = 1e12,
        .tries_kernels = true,
        .convolves = true,
        .context_bytes = 8e8};
    physics.footprint.reserved = 3.6e9;
    assert_true(quantiles_of(EVIDENCE_SCRIPT, &physics).p99_bytes.value < 1.3 * 3e9);
    assert_false(quantiles_of(EVIDENCE_SCRIPT, &physics).untried_p99_bytes.valid);
    physics.macs = 0;
    assert_true(quantiles_of(EVIDENCE_SCRIPT, &physics).p99_bytes.value > 2 * 3e9);
}

static void test_no_quantile_below_the_context(void **state)
{
    struct physics physics = {.conv_share = 0.9, .context_bytes = 2.9e9};
    assert_true(quantiles_of(EVIDENCE_SUMMARY, &physics).p50_bytes.value == 2.9e9);
}

static struct estimate estimate_of(const char *text)
{
    struct model *model;
    struct fault fault = {""};
    struct estimate estimate = {.note = ""};
    assert_int_equal(model_parse(text, strlen(text), &fault, &model), 0);
    struct estimate_request request = {.model = model,
        .batch = 64,
        .optimizer = optimizer_parse("sgd"),
        .precision = PRECISION_FP32};
    assert_int_equal(estimator_graph.run(&request, &fault, &estimate), 0);
    model_destroy(model);
    return estimate;
}

/* A network that ends in a map with a quarter of its image's sides labels pixels, or it makes
 * heatmaps or codes, whose loss is at the map's size: P50 and the floor are for the latter, P90 and
 * P99 for the former. Without biases the map is no result for pixels. */
static void test_a_loss_at_the_image_size_is_a_guess(void **state)
{
    static const char form[] = "Conv2d-1 [-1, 64, 64, 64] 9472\nLayerNorm-2 [-1, 4096, 64] 128\n"
                               "Conv2d-3 [-1, 64, 64, 64] 36928\nConv2d-4 [-1, 64, 64, 64] %d\n";
    char biased[256], plain[256];
    snprintf(biased, sizeof biased, form, 64 * 64 + 64);
    snprintf(plain, sizeof plain, form, 64 * 64);
    struct estimate guessed = estimate_of(biased), known = estimate_of(plain);
    assert_float_equal(guessed.p50_bytes.value / known.p50_bytes.value, 1, 0.05);
    assert_float_equal(guessed.floor_bytes.value / known.floor_bytes.value, 1, 0.05);
    assert_true(guessed.bytes.value > 1.5 * known.bytes.value);
    assert_true(guessed.p90_bytes.value > guessed.bytes.value);
    assert_non_null(strstr(guessed.note, "but for P50"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_grows_with_work),
        cmocka_unit_test(test_faster_hardware_and_formats),
        cmocka_unit_test(test_correction_is_bounded),
        cmocka_unit_test(test_quantiles_are_in_order),
        cmocka_unit_test(test_quantiles_follow_the_evidence),
        cmocka_unit_test(test_unsteady_replays_reserve_more),
        cmocka_unit_test(test_no_quantile_below_the_context),
        cmocka_unit_test(test_tried_kernels_reserve_more),
        cmocka_unit_test(test_tried_kernels_of_few_convolutions),
        cmocka_unit_test(test_a_loss_at_the_image_size_is_a_guess),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
