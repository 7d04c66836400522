/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of convolutions: the rule against what cuDNN took in trainings on an H200
 * (data/memory/kernels.jsonl.xz). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/array.h"
#include "base/units.h"
#include "estimator/physics/workspace.h"

enum { FP32 = 4, AMP = 2 };

/* A convolution over square maps, for `batch` samples. */
static struct convolution shape(int element, double batch, double in, double in_side, double out,
    double out_side, double taps, double groups)
{
    double in_positions = in_side * in_side, out_positions = out_side * out_side;
    return (struct convolution){.input = batch * in * in_positions * element,
        .output = batch * out * out_positions * element,
        .weight = in * out * taps / groups * element,
        .in_channels = in,
        .out_channels = out,
        .in_positions = in_positions,
        .out_positions = out_positions,
        .taps = taps,
        .groups = groups,
        .half = element == AMP};
}

/* What was measured, in MiB by pass; by which fraction the rule may differ. Below 0: that pass was
 * not measured. */
struct measured {
    struct convolution conv;
    double mib[3], off;
};

static void check_passes(const struct measured *measured)
{
    struct convolution conv = measured->conv;
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHT_GRADIENT; pass++) {
        conv.pass = (enum conv_pass)pass;
        double mib = workspace_of(&conv) / (double)MIB, wanted = measured->mib[pass];
        if (wanted >= 0 && fabs(mib - wanted) > measured->off * wanted)
            fail_msg("%.0f to %.0f channels, pass %d: %.2f MiB, measured %.2f", conv.in_channels,
                conv.out_channels, pass, mib, wanted);
    }
}

static void test_measured_convolutions(void **state)
{
    const struct measured cases[] = {
        /* Copies of input, output and weight; sums of the weight's gradient. */
        {shape(FP32, 64, 64, 224, 64, 224, 9, 1), {1568.1, 1568.1, 1570.1}, 0.0001},
        {shape(FP32, 64, 256, 56, 256, 56, 9, 1), {394.3, 394.3, 401.0}, 0.001},
        {shape(FP32, 64, 128, 56, 256, 56, 9, 1), {295.1, 295.1, 303.0}, 0.001},
        {shape(AMP, 16, 64, 224, 64, 224, 9, 1), {196.1, 196.1, 197.9}, 0.001},
        /* To twice as many channels the output is written in its place. */
        {shape(FP32, 64, 64, 112, 128, 112, 9, 1), {196.3, 588.3, 592.3}, 0.001},
        /* Images: channels are filled up to 4 and 8. */
        {shape(FP32, 64, 3, 224, 64, 112, 49, 1), {232.8, -1, 250.8}, 0.03},
        {shape(AMP, 256, 3, 224, 64, 55, 121, 1), {290.6, -1, 305.1}, 0.05},
        {shape(FP32, 64, 3, 224, 64, 224, 9, 1), {0, -1, 0}, 0},
        /* Groups, of 24 channels filled up to 32. */
        {shape(AMP, 128, 216, 28, 216, 28, 9, 9), {110.4, 110.4, 111.8}, 0.02},
        {shape(FP32, 64, 216, 28, 216, 28, 9, 9), {110.57, 110.57, -1}, 0.0001},
        /* Groups of 8, 16 and 24 channels with the sums of the weight's gradient. */
        {shape(FP32, 64, 256, 28, 256, 28, 9, 32), {98.07, 98.07, 99.2}, 0.0001},
        {shape(FP32, 64, 512, 28, 512, 14, 9, 32), {122.78, 122.78, 125.03}, 0.0001},
        {shape(FP32, 64, 576, 14, 576, 14, 9, 24), {74.34, 74.34, 79.41}, 0.02},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_passes(&cases[i]);
}

static void test_depthwise(void **state)
{
    struct convolution conv = shape(FP32, 64, 128, 56, 128, 56, 9, 128);
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHT_GRADIENT; pass++) {
        conv.pass = (enum conv_pass)pass;
        assert_true(workspace_of(&conv) == 0);
    }
}

static void test_one_tap(void **state)
{
    struct convolution conv = shape(FP32, 64, 512, 28, 1024, 14, 1, 1);
    conv.pass = CONV_FORWARD;
    assert_true(workspace_of(&conv) == conv.input + conv.output + conv.weight);
    conv = shape(FP32, 64, 1024, 14, 256, 14, 1, 1); /* 196 positions are no multiple of 8 */
    conv.pass = CONV_INPUT_GRADIENT;
    assert_true(workspace_of(&conv) == 0);
    conv.pass = CONV_WEIGHT_GRADIENT;
    assert_true(workspace_of(&conv) >= conv.input + conv.output);
    conv = shape(FP32, 64, 32, 14, 32, 14, 1, 1);
    conv.pass = CONV_WEIGHT_GRADIENT;
    assert_true(workspace_of(&conv) == 0);
}

/* Patches of 16 x 16: nothing forward, and a gradient for the weight alone. */
static void test_patches(void **state)
{
    struct convolution conv = shape(FP32, 64, 3, 224, 768, 14, 256, 1);
    assert_true(workspace_of(&conv) == 0);
    conv.pass = CONV_WEIGHT_GRADIENT;
    assert_true(workspace_of(&conv) > conv.output && workspace_of(&conv) < 2 * conv.output);
}

/* An export may lack what is not needed to draw a tensor. */
static void test_unknown_shapes(void **state)
{
    struct convolution conv = {.input = 24, .output = 40, .weight = 4};
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHT_GRADIENT; pass++) {
        conv.pass = (enum conv_pass)pass;
        assert_true(workspace_of(&conv) == 68);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_convolutions),
        cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_one_tap),
        cmocka_unit_test(test_patches),
        cmocka_unit_test(test_unknown_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
