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
#include "estimator/physics/kernel_time.h"
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
    assert_true(small.step_us < 5000 && big.step_us > 5 * small.step_us);
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

static struct kernel_time product(double m, double n, double k, bool half)
{
    struct kernel kernel = {
        .kind = KERNEL_PRODUCT, .half = half, .m = m, .n = n, .k = k, .count = 1, .bytes = 1};
    struct activity_rates rates = activity_rates;
    rates.kernel_us = 0;
    return kernel_time_of(&kernel, gpu_traits_find("H200"), &rates);
}

/* SMs compute tiles in waves: a product of few tiles takes as long as one that fills all SMs. */
static void test_products_come_in_waves(void **state)
{
    struct kernel_time few = product(1024, 1024, 192, true),
                       all = product(132 * 128, 128, 192, true),
                       more = product(10 * 132 * 128, 256, 192, true);
    assert_true(few.fill < all.fill);
    assert_true(
        product(133 * 128, 256, 192, true).us > 1.2 * product(132 * 128, 256, 192, true).us);
    assert_true(few.us > 0.45 * all.us);
    assert_true(more.us > 8 * all.us && more.fill > 0.9);
    assert_true(product(4096, 4096, 4096, false).us > 4 * product(4096, 4096, 4096, true).us);
}

/* A weight's gradient has few tiles and a large depth, which is cut into parts. */
static void test_a_deep_product_is_split(void **state)
{
    assert_true(product(64, 64, 1 << 20, true).fill > 0.2);
    assert_true(product(64, 64, 1 << 13, true).us < 2 * product(64, 64, 1 << 8, true).us);
}

static double us_of(const struct kernel *kernel)
{
    return kernel_time_of(kernel, gpu_traits_find("H200"), &activity_rates).us;
}

/* A sum over the batch has one block for each channel: few channels leave SMs idle. */
static void test_a_norm_over_the_batch_has_a_block_for_each_channel(void **state)
{
    struct kernel few = {.kind = KERNEL_NORM, .bytes = 1e8, .outputs = 1e7, .parts = 16},
                  many = few, rows = few;
    many.parts = 128;
    rows.parts = 0;
    assert_true(us_of(&few) > 4 * us_of(&many) && us_of(&many) > us_of(&rows));
    struct kernel_time t = kernel_time_of(&few, gpu_traits_find("H200"), &activity_rates);
    assert_float_equal(t.fill, 16.0 / 132, 1e-9);
}

/* Several taps need another layout; odd channels keep tensor cores from their rate; a depthwise
 * convolution does not use them. */
static void test_convolutions_by_kind(void **state)
{
    struct kernel pointwise = {.kind = KERNEL_POINTWISE,
        .half = true,
        .m = 1e5,
        .n = 1024,
        .k = 1024,
        .count = 1,
        .macs = 1e5 * 1024 * 1024,
        .bytes = 4e8};
    struct kernel taps = pointwise, odd = pointwise, depthwise = pointwise;
    taps.kind = KERNEL_CONV;
    odd.unaligned = true;
    depthwise.kind = KERNEL_DEPTHWISE;
    assert_true(us_of(&taps) > us_of(&pointwise) + 50);
    assert_true(us_of(&odd) > 1.3 * us_of(&pointwise));
    assert_true(us_of(&depthwise) > 20 * us_of(&pointwise));
    assert_true(kernel_is_unaligned(12, true) && !kernel_is_unaligned(12, false));
}

/* Depthwise convolutions go by SMs and their cycles: twice the lanes in an SM do not help. Older
 * kernels reach the rate of an A100, but not of a Hopper, which wants its own instructions. */
static void test_kernels_on_another_chip(void **state)
{
    const struct gpu_traits *h200 = gpu_traits_find("H200"), *a100 = gpu_traits_find("A100");
    struct activity_rates rates = activity_rates;
    rates.kernel_us = 0;
    struct kernel depthwise = {.kind = KERNEL_DEPTHWISE, .macs = 1e10, .outputs = 1e9};
    double times = kernel_time_of(&depthwise, a100, &rates).us /
                   kernel_time_of(&depthwise, h200, &rates).us;
    assert_float_equal(times, 132 * 1980.0 / (108 * 1410), 1e-9);
    struct kernel pointwise = {
        .kind = KERNEL_POINTWISE, .m = 1e7, .n = 256, .k = 1024, .count = 1, .outputs = 1e9};
    times = kernel_time_of(&pointwise, a100, &rates).us /
            kernel_time_of(&pointwise, h200, &rates).us;
    assert_float_equal(times, 0.63 * 494 / 156, 0.01);
    struct kernel taps = pointwise;
    taps.kind = KERNEL_CONV;
    times = kernel_time_of(&taps, a100, &rates).us / kernel_time_of(&taps, h200, &rates).us;
    assert_float_equal(times, 494.0 / 156, 0.01);
}

#define WORK_HEAD                                                                                  \
    "{\"colloc_export\":1,\"batch\":8,\"every_batch\":true,\"ticks\":4,\"precision\":\"amp\","     \
    "\"tensors\":[[4096,0,0,-1,0],[0,1024,1,3,1]],"
#define WORK_LAYERS                                                                                \
    "\"layers\":[{\"type\":\"Linear\",\"depth\":0,\"leaf\":true,\"parameters\":1024,\"shape\":[256]}]}"
#define WORK_OPERATOR(phase, name, calls, tensors, size)                                           \
    "{\"phase\":\"" phase "\",\"name\":\"" name "\",\"calls\":" calls ",\"tensors\":" tensors      \
    ",\"reads\":[0," size "],\"writes\":[0," size "],\"multiply_adds\":[0,0]}"

static struct activity activity_of_text(const char *text)
{
    struct export *export;
    struct fault fault = {""};
    if (export_parse(text, strlen(text), &fault, &export) < 0)
        fail_msg("%s", fault.text);
    struct physics_constants constants = physics_constants_of("H200");
    struct activity activity = activity_of_export(export, 8, constants.gpu, &constants.rates);
    export_destroy(export);
    return activity;
}

/* Many small kernels are the host's time, a few large ones the GPU's. */
static void test_a_step_is_as_long_as_the_slower_of_host_and_gpu(void **state)
{
    struct activity small = activity_of_text(WORK_HEAD "\"operators\":[" WORK_OPERATOR(
                        "forward", "add", "2000", "1", "8") "]," WORK_LAYERS),
                    huge = activity_of_text(WORK_HEAD "\"operators\":[" WORK_OPERATOR(
                        "forward", "add", "2", "1", "4000000000") "]," WORK_LAYERS);
    assert_true(small.step_us == small.host_us && small.host_us > 2 * small.gpu_us);
    assert_true(huge.step_us == huge.gpu_us && huge.gpu_us > 10 * huge.host_us);
    assert_true(small.smact < 0.1 && huge.smact > 0.9);
}

/* Views take the host's time alone; a chain's kernels follow one another. */
static void test_views_and_chains(void **state)
{
    struct activity none = activity_of_text(WORK_HEAD "\"operators\":[" WORK_OPERATOR(
                        "forward", "add", "1", "1", "8") "]," WORK_LAYERS),
                    views = activity_of_text(WORK_HEAD "\"operators\":[" WORK_OPERATOR("forward",
                        "view", "100", "0",
                        "0") "," WORK_OPERATOR("forward", "add", "1", "1", "8") "]," WORK_LAYERS),
                    chain = activity_of_text(WORK_HEAD "\"operators\":[" WORK_OPERATOR(
                        "forward", "recurrent", "1", "1000", "8") "]," WORK_LAYERS);
    assert_true(views.gpu_us == none.gpu_us && views.host_us > none.host_us);
    assert_true(chain.gpu_us > 100 * none.gpu_us);
}

/* One operator over many tensors is many kernels, and the host walks through the list. */
static void test_lists_of_an_optimizer(void **state)
{
    struct activity few = activity_of_text(WORK_HEAD "\"operators\":[" WORK_OPERATOR(
                        "optimizer", "_foreach_add_", "1", "10", "80000") "]," WORK_LAYERS),
                    many = activity_of_text(WORK_HEAD "\"operators\":[" WORK_OPERATOR(
                        "optimizer", "_foreach_add_", "1", "1000", "80000") "]," WORK_LAYERS);
    assert_true(many.gpu_us > 8 * few.gpu_us && many.host_us > few.host_us);
}

/* Linear layers of a text stand for the operators around them as well; other layers do not. */
static void test_a_summary_hides_operators_around_products(void **state)
{
    static const char linear[] = "Linear-1 [-1, 128, 512] 262656\nLinear-2 [-1, 128, 512] 262656\n",
                      relu[] = "Linear-1 [-1, 128, 512] 262656\nReLU-2 [-1, 128, 512] 0\n";
    double two = activity(linear, 8, "fp32", "NVIDIA H200").host_us,
           one = activity(relu, 8, "fp32", "NVIDIA H200").host_us;
    assert_true(two - one > activity_rates.hidden * activity_rates.forward_us);
}

/* An export may come from anywhere: shapes without elements make no infinite times. */
static void test_shapes_without_elements(void **state)
{
    struct activity empty = activity_of_text(WORK_HEAD
        "\"convs\":[{\"tick\":1,\"phase\":\"forward\",\"batch\":[0,1],\"input\":[0,8,8],\"weight\":[0,3],"
        "\"output\":[0,8,8],\"groups\":0,\"dtype\":\"float32\"}],"
        "\"matmuls\":[{\"phase\":\"forward\",\"m\":[0,0],\"n\":[0,0],\"k\":[0,0],\"count\":[0,0]}],"
        "\"operators\":[" WORK_OPERATOR("optimizer", "_foreach_add_", "0", "0",
            "1") "," WORK_OPERATOR("backward", "recurrent", "0", "0", "8") "]," WORK_LAYERS);
    assert_true(isfinite(empty.step_us) && isfinite(empty.smact) && isfinite(empty.dram));
    assert_true(empty.smact >= 0 && empty.smact <= 1);
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

/* cuDNN chooses other kernels on another chip, which shows where a network convolves. What a run
 * with known kernels tells does not depend on it. */
static void test_foreign_chips_reserve_more(void **state)
{
    struct physics convolves = {.conv_share = 0.9, .convolves = true}, products = {0};
    struct estimate fitted = quantiles_of(EVIDENCE_EXPORT, &convolves),
                    plain = quantiles_of(EVIDENCE_EXPORT, &products),
                    known = quantiles_of(EVIDENCE_KERNELS, &convolves);
    convolves.is_foreign_gpu = products.is_foreign_gpu = true;
    struct estimate foreign = quantiles_of(EVIDENCE_EXPORT, &convolves),
                    foreign_plain = quantiles_of(EVIDENCE_EXPORT, &products);
    assert_true(fitted.p99_bytes.value < 1.1 * 3e9 && foreign.p99_bytes.value > 1.3 * 3e9);
    assert_true(foreign.p90_bytes.value > fitted.p90_bytes.value);
    assert_true(foreign_plain.p99_bytes.value > plain.p99_bytes.value);
    assert_true(foreign_plain.p99_bytes.value < foreign.p99_bytes.value);
    assert_true(foreign.p50_bytes.value < 1.03 * 3e9);
    assert_true(
        quantiles_of(EVIDENCE_KERNELS, &convolves).p99_bytes.value == known.p99_bytes.value);
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

static struct estimate estimate_with_loader(double rate)
{
    struct model *model;
    struct estimate estimate;
    assert_int_equal(model_parse(large, strlen(large), NULL, &model), 0);
    struct estimate_request request = {
        .model = model, .batch = 64, .gpu_kind = "NVIDIA H200", .loader_rate = rate};
    assert_int_equal(estimate_run("graph", &request, NULL, &estimate), 0);
    model_destroy(model);
    return estimate;
}

/* Half of the rate at which the GPU computes halves its activity; a faster loader changes nothing,
 * nor does any loader the memory. */
static void test_a_gpu_waits_for_its_data(void **state)
{
    struct estimate alone = estimate_with_loader(0);
    double rate = 64 / (alone.step_us.value / 1e6);
    struct estimate fast = estimate_with_loader(2 * rate), slow = estimate_with_loader(rate / 2);
    assert_float_equal(fast.smact.value, alone.smact.value, 1e-9);
    assert_float_equal(fast.step_us.value, alone.step_us.value, 1e-6);
    assert_null(strstr(fast.note, "waits for data"));
    assert_float_equal(slow.smact.value, alone.smact.value / 2, 1e-9);
    assert_float_equal(slow.dram_active.value, alone.dram_active.value / 2, 1e-9);
    assert_float_equal(slow.step_us.value, 2 * alone.step_us.value, 1e-3);
    assert_non_null(strstr(slow.note, "waits for data for 50 % of a step"));
    assert_true(slow.bytes.value == alone.bytes.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_grows_with_work),
        cmocka_unit_test(test_faster_hardware_and_formats),
        cmocka_unit_test(test_products_come_in_waves),
        cmocka_unit_test(test_a_deep_product_is_split),
        cmocka_unit_test(test_a_step_is_as_long_as_the_slower_of_host_and_gpu),
        cmocka_unit_test(test_a_norm_over_the_batch_has_a_block_for_each_channel),
        cmocka_unit_test(test_a_gpu_waits_for_its_data),
        cmocka_unit_test(test_convolutions_by_kind),
        cmocka_unit_test(test_kernels_on_another_chip),
        cmocka_unit_test(test_views_and_chains),
        cmocka_unit_test(test_lists_of_an_optimizer),
        cmocka_unit_test(test_a_summary_hides_operators_around_products),
        cmocka_unit_test(test_shapes_without_elements),
        cmocka_unit_test(test_correction_is_bounded),
        cmocka_unit_test(test_quantiles_are_in_order),
        cmocka_unit_test(test_quantiles_follow_the_evidence),
        cmocka_unit_test(test_unsteady_replays_reserve_more),
        cmocka_unit_test(test_no_quantile_below_the_context),
        cmocka_unit_test(test_foreign_chips_reserve_more),
        cmocka_unit_test(test_tried_kernels_reserve_more),
        cmocka_unit_test(test_tried_kernels_of_few_convolutions),
        cmocka_unit_test(test_a_loss_at_the_image_size_is_a_guess),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
