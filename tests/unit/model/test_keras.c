/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of Keras. */
#include "unit.h"

static void test_keras2_joins_wrapped_cells(void **state)
{
    struct model *model = parse_sample("keras2_wrapped");
    assert_int_equal(model->format, SUMMARY_KERAS);
    assert_int_equal(model->n_layers, 3);
    assert_true(span_is(model->layers[1].name, "max_pooling2d"));
    assert_true(span_is(model->layers[1].type, "MaxPooling2D"));
    assert_int_equal(model->layers[1].kind, LAYER_POOL);
    assert_int_equal(model->parameters, 54410);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

static void test_keras3_joins_wrapped_cells(void **state)
{
    struct model *model = parse_sample("keras3_boxed");
    assert_int_equal(model->n_layers, 3);
    assert_int_equal(model->layers[0].kind, LAYER_INPUT);
    assert_int_equal(model->layers[1].activations.value, 26 * 26 * 32);
    assert_int_equal(model->activations.value, 26 * 26 * 32 + 10); /* the input is no activation */
    assert_false(model->batch.known);
    model_destroy(model);
}

static void test_optimizer_state_is_not_the_model(void **state)
{
    struct model *model = parse_sample("keras3_boxed");
    assert_int_equal(model->parameters, 21960);
    assert_int_equal(model->parameters_printed.value, 21960);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

static void test_shortened_type(void **state)
{
    struct model *model = parse_text("│ Layer (type)            │ Output Shape │ Param # │\n"
                                     "│ pool (GlobalAveragePoo… │ (None, 64)   │ 0       │\n"
                                     "│ dense (Dense)           │ (None, 5)    │ 325     │\n");
    assert_int_equal(model->layers[0].kind, LAYER_POOL_GLOBAL);
    assert_int_equal(model->parameters, 325);
    model_destroy(model);
}

static void test_nested_rows_and_trainable(void **state)
{
    struct model *model = parse_text(" Layer (type)         Output Shape      Param #   Trainable\n"
                                     "=========================================================\n"
                                     " body (Functional)    (None, 8)         90        Y\n"
                                     "|¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯|\n"
                                     "| a (Dense)           (None, 8)         40        N\n"
                                     "| b (Dense)           (None, 8)         50        Y\n"
                                     "=========================================================\n"
                                     "Total params: 90\n");
    assert_int_equal(model->n_layers, 3);
    assert_false(model->layers[0].leaf);
    assert_int_equal(model->layers[1].depth, 1);
    assert_int_equal(model->layers[1].trainable, TRISTATE_NO);
    assert_int_equal(model->layers[2].trainable, TRISTATE_YES);
    assert_int_equal(model->parameters, 90);
    model_destroy(model);
}

static void test_several_outputs_and_none_known(void **state)
{
    struct model *model = parse_text(
        " Layer (type)         Output Shape                Param #   Connected to\n"
        "=======================================================================\n"
        " rnn (LSTM)           [(None, 64), (None, 64)]    99        ['x[0][0]',\n"
        "                                                            'y[0][0]']\n"
        " odd (Dense)          multiple                    10        ['rnn[0][0]']\n"
        " raw (Dense)          ?                           ?         []\n");
    assert_int_equal(model->n_layers, 3);
    assert_int_equal(model->layers[0].activations.value, 128);
    assert_false(model->layers[1].activations.known);
    assert_int_equal(model->n_leaves_unshaped, 2);
    assert_warning(model, "was not built");
    model_destroy(model);
}

static void test_stray_lines(void **state)
{
    struct model *model = parse_text(" Layer (type)         Output Shape      Param #\n"
                                     "===============================================\n"
                                     " a (Conv1D)           (None, 8)         40\n"
                                     "WARNING: the retracing of this function is expensive\n"
                                     " b (Dense)            (None, 8)         50\n");
    assert_int_equal(model->parameters, 90);
    assert_int_equal(model->layers[0].kind, LAYER_CONV);
    assert_warning(model, "line 4: not a row");
    model_destroy(model);
}

static void test_a_nested_model_in_one_row_hides_its_layers(void **state)
{
    struct model *model = parse_text(" Layer (type)         Output Shape      Param #\n"
                                     "===============================================\n"
                                     " body (Functional)    (None, 8)         90\n");
    assert_true(model->layers[0].hides);
    assert_int_equal(model->parameters_hidden, 90);
    model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keras2_joins_wrapped_cells),
        cmocka_unit_test(test_keras3_joins_wrapped_cells),
        cmocka_unit_test(test_optimizer_state_is_not_the_model),
        cmocka_unit_test(test_shortened_type),
        cmocka_unit_test(test_nested_rows_and_trainable),
        cmocka_unit_test(test_several_outputs_and_none_known),
        cmocka_unit_test(test_stray_lines),
        cmocka_unit_test(test_a_nested_model_in_one_row_hides_its_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
