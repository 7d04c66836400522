/* SPDX-License-Identifier: Apache-2.0 */
/* What the shapes and types of a summary show of the code between its layers: each rule on a small
 * text that shows it, and on one that does not. */
#include "tape_case.h"

#include <stdio.h>

#include "base/units.h"

/* A block whose branches are a normalisation and two modules; %s: layers between these. */
static const char branches_form[] = TREE
    "Net: 0-1  [-1, 16, 8, 8]  --\n├─Conv2d: 1-1  [-1, 16, 8, 8]  432\n"
    "├─Block: 1-2  [-1, 16, 8, 8]  --\n│    ├─BatchNorm2d: 2-1  [-1, 16, 8, 8]  32\n"
    "│    ├─Sequential: 2-2  [-1, 16, 8, 8]  --\n"
    "│    │    ├─Conv2d: 3-1  [-1, 16, 8, 8]  256\n"
    "│    │    ├─BatchNorm2d: 3-2  [-1, 16, 8, 8]  32\n%s"
    "│    ├─Sequential: 2-3  [-1, 16, 8, 8]  --\n"
    "│    │    ├─Conv2d: 3-3  [-1, 16, 8, 8]  2,304\n"
    "│    │    ├─BatchNorm2d: 3-4  [-1, 16, 8, 8]  32\n"
    "│    ├─ReLU: 2-4  [-1, 16, 8, 8]  --\n====\n";

/* Of the block the input, the outputs of two convolutions and the activated sum are kept. With an
 * activation between the modules they are a chain. */
static void test_branches_are_added(void **state)
{
    char beside[1024], chain[1024];
    snprintf(beside, sizeof beside, branches_form, "");
    snprintf(chain, sizeof chain, branches_form, "│    │    ├─ReLU: 3-3  [-1, 16, 8, 8]  --\n");
    struct built b;
    build(beside, (struct estimate_request){.batch = 2}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 2);
    assert_true(b.footprint.saved == 2 * 4 * 16 * 8 * 8 * 4.0);
    const struct op *sum = last_of(&b, LAYER_MERGE), *conv = last_of(&b, LAYER_CONV);
    assert_int_equal(conv->inputs[0], 1); /* what the block reads */
    assert_int_equal(last_of(&b, LAYER_ACTIVATION)->inputs[0], sum->output);
    drop(&b);
    build(chain, (struct estimate_request){.batch = 2}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 0);
    drop(&b);
}

/* The first block of a network may have branches, too: both read the data. */
static void test_branches_read_the_data(void **state)
{
    struct built b;
    build(TREE
        "Net: 0-1  [-1, 8, 8, 8]  --\n├─Block: 1-1  [-1, 8, 8, 8]  --\n"
        "│    ├─Sequential: 2-1  [-1, 8, 8, 8]  --\n│    │    ├─Conv2d: 3-1  [-1, 8, 8, 8]  24\n"
        "│    │    ├─BatchNorm2d: 3-2  [-1, 8, 8, 8]  16\n"
        "│    ├─Sequential: 2-2  [-1, 8, 8, 8]  --\n│    │    ├─Conv2d: 3-3  [-1, 8, 8, 8]  216\n"
        "│    │    ├─BatchNorm2d: 3-4  [-1, 8, 8, 8]  16\n│    ├─ReLU: 2-3  [-1, 8, 8, 8]  --\n"
        "====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_INPUT), 1);
    assert_int_equal(last_of(&b, LAYER_CONV)->inputs[0], 0);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 1);
    drop(&b);
}

/* Branches whose layers have no sizes: nothing is there to be added. */
static void test_branches_without_sizes(void **state)
{
    struct built b;
    build(TREE "Net: 0-1  [-1, 8, 8, 8]  --\n├─Block: 1-1  [-1, 8, 8, 8]  --\n"
               "│    ├─Sequential: 2-1  [-1, 8, 8, 8]  --\n│    │    ├─Conv2d: 3-1  --  24\n"
               "│    │    ├─BatchNorm2d: 3-2  --  16\n"
               "│    ├─Sequential: 2-2  [-1, 8, 8, 8]  --\n│    │    ├─Conv2d: 3-3  --  216\n"
               "│    │    ├─BatchNorm2d: 3-4  --  16\n│    ├─ReLU: 2-3  [-1, 8, 8, 8]  --\n"
               "====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_CONV), 0);
    drop(&b);
}

/* 2048 channels in a window of 3 x 3, with a gain and a bias for each. In 32 bit the standardised
 * weight is kept beside the weight. */
static void test_standardized_weights(void **state)
{
    static const char form[] =
        "Conv2d-1 [-1, 2048, 2, 2] 55296\n%s-2 [-1, 2048, 2, 2] 37752832\nReLU-3 [-1, 2048, 2, 2] 0\n";
    char plain[256], standard[256];
    snprintf(plain, sizeof plain, form, "Conv2d");
    snprintf(standard, sizeof standard, form, "ScaledStdConv2d");
    struct built b;
    build(standard, (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_true(last_of(&b, LAYER_CONV)->window == 9 && last_of(&b, LAYER_CONV)->standardizes);
    double live = b.footprint.live;
    drop(&b);
    build(plain, (struct estimate_request){.batch = 1}, "sgd", &b);
    double more = live - b.footprint.live, weight = 9.0 * 2048 * 2048 * 4;
    assert_true(more > 0.99 * weight && more < 1.01 * weight);
    drop(&b);
}

/* A residual block of a network without normalisation begins with an activation whose result is
 * multiplied by a number: the activated map and the product are kept. */
static void test_scaled_branches(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, 16, 8, 8]  --\n├─Conv2d: 1-1  [-1, 16, 8, 8]  432\n"
        "├─Block: 1-2  [-1, 16, 8, 8]  --\n│    ├─ReLU: 2-1  [-1, 16, 8, 8]  --\n"
        "│    ├─%s: 2-2  [-1, 16, 8, 8]  2,336\n====\n";
    char plain[512], scaled[512];
    snprintf(plain, sizeof plain, form, "Conv2d");
    snprintf(scaled, sizeof scaled, form, "ScaledStdConv2d");
    assert_true(saved_by(scaled) - saved_by(plain) == 16 * 8 * 8 * 4.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches_are_added),
        cmocka_unit_test(test_branches_read_the_data),
        cmocka_unit_test(test_branches_without_sizes),
        cmocka_unit_test(test_standardized_weights),
        cmocka_unit_test(test_scaled_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
