/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of torchsummary. */
#include "unit.h"

#include <errno.h>

static void test_free_batch(void **state)
{
    struct model *model = parse_sample("torchsummary_free_batch");
    assert_int_equal(model->format, SUMMARY_TORCHSUMMARY);
    assert_int_equal(model->n_layers, 11);
    assert_int_equal(model->parameters, 5450);
    assert_true(model->parameters_printed.known);
    assert_int_equal(model->parameters_printed.value, 5450);
    assert_int_equal(model->trainable_printed.value, 5450);
    assert_false(model->batch.known);
    assert_int_equal(model->n_warnings, 0);
    const struct layer *conv = &model->layers[0];
    assert_int_equal(conv->rank, 3);
    assert_int_equal(conv->shape[0], 16);
    assert_int_equal(conv->activations.value, 16 * 32 * 32);
    model_destroy(model);
}

static void test_fixed_batch_gives_the_same_per_sample(void **state)
{
    struct model *free_batch = parse_sample("torchsummary_free_batch");
    struct model *fixed = parse_sample("torchsummary_fixed_batch");
    assert_true(fixed->batch.known);
    assert_int_equal(fixed->batch.value, 64);
    assert_int_equal(fixed->activations.value, free_batch->activations.value);
    for (size_t i = 0; i < fixed->n_layers; i++) {
        assert_int_equal(fixed->layers[i].rank, free_batch->layers[i].rank);
        assert_memory_equal(
            fixed->layers[i].shape, free_batch->layers[i].shape, sizeof fixed->layers[i].shape);
    }
    model_destroy(fixed);
    model_destroy(free_batch);
}

static void test_containers_repeat_their_last_child(void **state)
{
    struct model *model = parse_sample("torchsummary_free_batch");
    assert_false(layer_called(model, "TinyBlock")->leaf);
    assert_int_equal(model->n_leaves, 10);
    assert_int_equal(model->activations.value,
        3 * 16 * 32 * 32 + 16 * 16 * 16 + 2 * 32 * 16 * 16 + 32 + 32 + 32 + 10);
    model_destroy(model);
}

static void test_unknown_type_with_parameters_is_a_leaf(void **state)
{
    struct model *model = parse_text("Gizmo-1   [-1, 8, 4]   24\nLinear-2  [-1, 2]  18\n");
    assert_true(model->layers[0].leaf);
    assert_int_equal(model->n_leaves_unknown, 1);
    assert_warning(model, "line 1: Gizmo is not a known layer type");
    assert_int_equal(model->activations.value, 34);
    model_destroy(model);
}

static void test_tuple_outputs_sum_up(void **state)
{
    struct model *model = parse_text(
        "LSTM-1  [[-1, 10, 32], [-1, 2, 32]]  0\nLinear-2  [16, 10]  330\n");
    assert_int_equal(model->layers[0].activations.value, 10 * 32 + 2 * 32);
    assert_int_equal(model->layers[0].rank, 2);
    assert_warning(model, "torchsummary does not count the parameters of LSTM");
    model_destroy(model);
}

static void test_long_name_overflows_its_column(void **state)
{
    struct model *model = parse_text("AVeryLongNameOfAModuleIndeed_v2-12  [-1, 8]  1,000\n");
    assert_true(span_is(model->layers[0].type, "AVeryLongNameOfAModuleIndeed_v2"));
    assert_int_equal(model->layers[0].parameters, 1000);
    model_destroy(model);
}

static void test_batch_elsewhere_in_the_shape(void **state)
{
    /* flattened with another dimension, sequence first, and in no dimension as a factor */
    struct model *model = parse_text(
        "Linear-1 [8, 5] 1\nLinear-2 [80, 3] 1\nLinear-3 [7, 8, 2] 1\nLinear-4 [7, 3] 1\n");
    assert_int_equal(model->batch.value, 8);
    assert_int_equal(model->layers[1].activations.value, 30);
    assert_int_equal(model->layers[2].activations.value, 14);
    assert_int_equal(model->layers[3].activations.value, 3); /* 21 / 8, rounded up */
    model_destroy(model);
}

static void test_disagreement_names_both_totals(void **state)
{
    struct model *model = parse_text("Linear-1 [-1, 5] 30\nTotal params: 1,234\n");
    assert_int_equal(model->parameters, 30);
    assert_warning(model, "prints 1234 parameters in total, its layers add up to 30");
    model_destroy(model);
}

static void test_faults_say_what_and_where(void **state)
{
    const char *overflow =
        "Linear-1 [-1, 5] 30\nConv2d-2 [-1, 4000000000, 4000000000, 4000000000] 1\n";
    assert_fault(overflow, strlen(overflow), ERANGE,
        "line 2: the product of the output shape is beyond 64 bits");
    const char *digits = "Linear-1 [-1, 99999999999999999999] 30\n";
    assert_fault(digits, strlen(digits), ERANGE, "line 1: a dimension");
    const char *count = "Linear-1 [-1, 5] 99999999999999999999\n";
    assert_fault(count, strlen(count), ERANGE, "line 1: a parameter count beyond 64 bits");
    const char *sum =
        "Linear-1 [-1, 5] 9000000000000000000\nLinear-2 [-1, 5] 9000000000000000000\n";
    assert_fault(sum, strlen(sum), ERANGE, "line 2: the sums over the layers");
    const char *zero = "Linear-1 [0, 5] 30\n";
    assert_fault(zero, strlen(zero), EINVAL, "line 1: a dimension of 0");
    const char *negative = "Linear-1 [-1, -5] 30\n";
    assert_fault(negative, strlen(negative), EINVAL, "line 1: a negative dimension");
    const char *word = "Linear-1 [-1, 5] many\n";
    assert_fault(word, strlen(word), EINVAL, "line 1: \"many\" is no parameter count");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_batch),
        cmocka_unit_test(test_fixed_batch_gives_the_same_per_sample),
        cmocka_unit_test(test_containers_repeat_their_last_child),
        cmocka_unit_test(test_unknown_type_with_parameters_is_a_leaf),
        cmocka_unit_test(test_tuple_outputs_sum_up),
        cmocka_unit_test(test_long_name_overflows_its_column),
        cmocka_unit_test(test_batch_elsewhere_in_the_shape),
        cmocka_unit_test(test_disagreement_names_both_totals),
        cmocka_unit_test(test_faults_say_what_and_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
