/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of torchinfo. */
#include "unit.h"

static void test_columns_in_any_order(void **state)
{
    struct model *model = parse_sample("torchinfo_columns");
    assert_int_equal(model->format, SUMMARY_TORCHINFO);
    assert_int_equal(model->n_layers, 8);
    assert_int_equal(model->parameters, 2938);
    assert_int_equal(model->batch.value, 8);
    assert_int_equal(model->n_warnings, 0);
    const struct layer *conv = layer_called(model, "0");
    assert_true(span_is(conv->type, "Conv2d"));
    assert_int_equal(conv->depth, 2);
    assert_int_equal(conv->kernel_size, 9);
    assert_int_equal(conv->activations.value, 16 * 32 * 32);
    model_destroy(model);
}

static void test_frozen_and_recursive(void **state)
{
    struct model *model = parse_sample("torchinfo_columns");
    assert_int_equal(layer_called(model, "0")->trainable, TRISTATE_NO);
    assert_int_equal(layer_called(model, "0")->parameters, 448);
    assert_int_equal(layer_called(model, "mix")->trainable, TRISTATE_YES);
    const struct layer *again = layer_called(model, "mix") + 1;
    assert_true(again->shared);
    assert_int_equal(again->parameters, 0);
    assert_true(again->leaf && again->activations.known);
    model_destroy(model);
}

static void test_frozen_by_parentheses_alone(void **state)
{
    struct model *model = parse_text("Layer (type:depth-idx)   Output Shape   Param #\n"
                                     "├─Linear: 1-1            [1, 4]         (20)\n"
                                     "├─Linear: 1-2            [1, 4]         30\n"
                                     "├─ReLU: 1-3              [1, 4]         --\n");
    assert_int_equal(model->layers[0].trainable, TRISTATE_NO);
    assert_int_equal(model->layers[1].trainable, TRISTATE_YES);
    assert_int_equal(model->layers[2].trainable, TRISTATE_UNKNOWN);
    assert_int_equal(model->parameters, 50);
    model_destroy(model);
}

static void test_containers_are_no_leaves(void **state)
{
    struct model *model = parse_sample("torchinfo_columns");
    assert_false(model->layers[0].leaf);
    assert_false(layer_called(model, "stem")->leaf);
    assert_int_equal(model->activations.value, 4 * 16 * 32 * 32 + 16 + 10);
    model_destroy(model);
}

static void test_ascii_tree_with_hidden_leaves_and_units(void **state)
{
    struct model *model = parse_sample("torchinfo_ascii_depth");
    assert_int_equal(model->n_layers, 5);
    assert_int_equal(model->layers[2].depth, 1);
    assert_true(layer_called(model, "ResidualTower")->hides);
    assert_int_equal(model->parameters, 2112 + 99072 + 128 + 325);
    assert_int_equal(model->parameters_hidden, 99072);
    assert_warning(model, "hide their layers");
    for (size_t i = 0; i < model_warnings(model); i++) /* 101.64 k is 101,637 as far as it goes */
        assert_null(strstr(model->warnings[i], "add up to"));
    model_destroy(model);
}

static void test_long_cells_do_not_shift_the_others(void **state)
{
    struct model *model = parse_text(
        "Layer (type:depth-idx)   Output Shape              Param #\n"
        "├─Linear: 1-1            [[2, 100000, 100000], [2, 100000, 100000]] 17\n");
    assert_int_equal(model->layers[0].activations.value, 20000000000);
    assert_int_equal(model->parameters, 17);
    model_destroy(model);
}

static void test_blank_cells_are_not_known(void **state)
{
    struct model *model = parse_text("Layer (type:depth-idx)   Output Shape   Param #\n"
                                     "├─Linear: 1-1            --             17\n");
    assert_false(model->layers[0].activations.known);
    assert_false(model->activations.known);
    assert_int_equal(model->n_leaves_unshaped, 1);
    model_destroy(model);
}

static void test_containers_that_repeat_their_counts(void **state)
{
    struct model *model = parse_text("Layer (type:depth-idx)   Output Shape   Param #\n"
                                     "├─Sequential: 1-1        [1, 4]         50\n"
                                     "|    └─Linear: 2-1       [1, 4]         20\n"
                                     "|    └─Linear: 2-2       [1, 4]         30\n"
                                     "Total params: 50\n");
    assert_int_equal(model->parameters, 50);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

static void test_known_types_around_others(void **state)
{
    struct model *model = parse_text("Layer (type:depth-idx)           Output Shape   Param #\n"
                                     "├─Conv2dNormActivation: 1-1      [1, 4]         --\n"
                                     "│    └─Conv2d: 2-1               [1, 4]         20\n"
                                     "├─BatchNormAct2d: 1-2            [1, 4]         8\n"
                                     "│    └─ReLU: 2-2                 [1, 4]         --\n"
                                     "├─FancyActivation: 1-3           [1, 4]         --\n"
                                     "│    └─ReLU: 2-3                 [1, 4]         --\n");
    assert_false(model->layers[0].leaf);
    assert_true(model->layers[2].leaf);  /* normalises itself */
    assert_false(model->layers[4].leaf); /* named like a layer, but only contains others */
    assert_int_equal(model->n_leaves, 4);
    model_destroy(model);
}

static void test_stray_lines(void **state)
{
    struct model *model = parse_text("Layer (type:depth-idx)   Output Shape   Param #\n"
                                     "Net                      [1, 4]         --\n"
                                     "UserWarning: be careful\n"
                                     "careful indeed\n"
                                     "├─Linear: 1-1            [1, 4]         20\n");
    assert_int_equal(model->n_layers, 2);
    assert_warning(model, "line 3: not a row");
    assert_warning(model, "line 4: not a row");
    model_destroy(model);
}

static void test_depth_without_numbers_comes_from_the_tree(void **state)
{
    struct model *model = parse_text("Layer (type (var_name))  Output Shape   Param #\n"
                                     "Net (Net)                [1, 4]         --\n"
                                     "├─Sequential (a)         [1, 4]         --\n"
                                     "│    └─Linear (0)        [1, 4]         20\n");
    assert_int_equal(model->layers[0].depth, 0);
    assert_int_equal(model->layers[1].depth, 1);
    assert_int_equal(model->layers[2].depth, 2);
    model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_in_any_order),
        cmocka_unit_test(test_frozen_and_recursive),
        cmocka_unit_test(test_frozen_by_parentheses_alone),
        cmocka_unit_test(test_containers_are_no_leaves),
        cmocka_unit_test(test_ascii_tree_with_hidden_leaves_and_units),
        cmocka_unit_test(test_long_cells_do_not_shift_the_others),
        cmocka_unit_test(test_blank_cells_are_not_known),
        cmocka_unit_test(test_containers_that_repeat_their_counts),
        cmocka_unit_test(test_known_types_around_others),
        cmocka_unit_test(test_stray_lines),
        cmocka_unit_test(test_depth_without_numbers_comes_from_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
