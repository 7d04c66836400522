/* SPDX-License-Identifier: Apache-2.0 */
/* Printed PyTorch modules. */
#include "unit.h"

#include <errno.h>

static void test_counts_come_from_the_tree(void **state)
{
    struct model *model = parse_sample("repr_counts");
    assert_int_equal(model->format, SUMMARY_REPR);
    assert_int_equal(model->parameters, 76512);
    assert_int_equal(model->parameters_printed.value, 250624);
    assert_warning(model, "prints 250624 parameters in total, its layers add up to 76512");
    assert_false(model->activations.known);
    assert_false(model->batch.known);
    model_destroy(model);
}

static void test_raw_parameters_belong_to_their_container(void **state)
{
    struct model *model = parse_sample("repr_counts");
    assert_int_equal(layer_called(model, "attn")->parameters, 4160 - 64);
    assert_int_equal(layer_called(model, "mlp")->parameters, 0);
    model_destroy(model);
}

static void test_tied_weights_are_noticed(void **state)
{
    struct model *model = parse_sample("repr_counts");
    assert_warning(model, "line 17: head has the embedding's size");
    model_destroy(model);
}

static void test_plain_counts_follow_from_arguments(void **state)
{
    struct model *model = parse_sample("repr_plain");
    assert_int_equal(layer_called(model, "patch")->parameters, 64 * 3 * 16);
    assert_int_equal(layer_called(model, "norm")->parameters, 128);
    assert_int_equal(layer_called(model, "attn")->parameters, 3 * 64 * 64 + 3 * 64);
    assert_int_equal(layer_called(model, "down")->parameters, 128 * 2 * 9 + 128);
    assert_int_equal(layer_called(model, "group")->parameters, 256);
    assert_int_equal(layer_called(model, "rnn")->parameters, 66560);
    assert_int_equal(layer_called(model, "head")->parameters, 650);
    assert_int_equal(model->parameters, 223050);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

static void test_repeats_are_written_out(void **state)
{
    struct model *model = parse_sample("repr_plain");
    size_t attentions = 0, norms = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        attentions += model->layers[i].kind == LAYER_ATTENTION;
        norms += span_is(model->layers[i].type, "LayerNorm");
    }
    assert_int_equal(attentions, 3);
    assert_int_equal(norms, 6);
    model_destroy(model);
}

static void test_constructor_arguments(void **state)
{
    struct model *model = parse_sample("repr_plain");
    const struct layer *patch = layer_called(model, "patch");
    assert_int_equal(patch->in_size, 3);
    assert_int_equal(patch->out_size, 64);
    assert_int_equal(patch->kernel_size, 16);
    assert_int_equal(layer_called(model, "act")->in_place, TRISTATE_YES);
    assert_int_equal(layer_called(model, "drop")->in_place, TRISTATE_UNKNOWN);
    model_destroy(model);
}

static void test_raw_parameters_count_whatever_the_printed_total(void **state)
{
    /* XLNet's printed total leaves raw parameters out, and so agrees with the leaves alone. */
    struct model *model = parse_text(
        "Net(\n  (a): Linear(in_features=2, out_features=2, bias=True), 6 params\n"
        "), 10 params\nTotal params: 6\n");
    assert_int_equal(model->parameters, 10);
    assert_warning(model, "prints 6 parameters in total, its layers add up to 10");
    model_destroy(model);
}

static void test_shared_modules_count_once(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (a): Linear(in_features=2, out_features=2, bias=True), 6 params\n"
        "  (b): Linear(in_features=2, out_features=2, bias=True), 6 params\n), 6 params\n");
    assert_int_equal(model->parameters, 6);
    assert_warning(model, "stand in several places");
    model_destroy(model);
}

static void test_repeated_blocks_with_counts(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (0-1): 2 x Block(\n"
        "    (a): Linear(in_features=2, out_features=2, bias=True), 6 params\n"
        "    (b): Linear(in_features=2, out_features=2, bias=True), 6 params\n"
        "  ), 6 params\n), 12 params\n");
    assert_int_equal(model->n_layers, 7);
    assert_int_equal(model->parameters, 12);
    assert_int_equal(model->parameters_shared, 12);
    model_destroy(model);
}

static void test_hugging_face_conv1d_is_linear(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (a): Conv1D(nf=12, nx=4)\n  (b): Conv1D(), 60 params\n)\n");
    assert_int_equal(model->layers[1].kind, LAYER_LINEAR);
    assert_int_equal(model->layers[1].parameters, 4 * 12 + 12);
    assert_int_equal(model->parameters, 120);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

static void test_one_layer_alone(void **state)
{
    struct model *model = parse_text("Linear(in_features=10, out_features=3, bias=True)\n");
    assert_int_equal(model->parameters, 33);
    model_destroy(model);
}

static void test_uncounted_layers_are_told(void **state)
{
    struct model *model = parse_text("Net(\n  (a): Wavelet(3)\n)\n");
    assert_int_equal(model->parameters, 0);
    assert_warning(model, "parameters of 1 layers do not follow");
    model_destroy(model);
}

static void test_cut_off(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (a): Sequential(\n    (0): Linear(in_features=10, out_features=3)\n");
    assert_int_equal(model->parameters, 33);
    assert_warning(model, "cut off: 2 modules are still open");
    model_destroy(model);
}

static void test_bombs(void **state)
{
    const char *repeats =
        "Net(\n  (0-9): 9999999999 x Block(\n    (0-9): 9999999999 x ReLU()\n  )\n)\n";
    assert_fault(repeats, strlen(repeats), EFBIG, "line 3: more than 50000 layers");
    const char *sums =
        "Net(\n  (a): A(\n    (b): ReLU(), 9000000000000000000 params\n  ), 0 params\n"
        "  (c): A(\n    (d): ReLU(), 9000000000000000000 params\n  ), 0 params\n), 0 params\n";
    assert_fault(sums, strlen(sums), ERANGE, "the sums over the layers are beyond 64 bits");
    const char *product =
        "Net(\n  (a): Linear(in_features=9000000000, out_features=9000000000)\n)\n";
    assert_fault(
        product, strlen(product), ERANGE, "line 2: the parameters of Linear are beyond 64 bits");
    char deep[300 * 9 + 8] = "Net(\n";
    for (int i = 0; i < 300; i++)
        strcat(deep, " (a): B(\n");
    assert_fault(deep, strlen(deep), EFBIG, "nested more than 256 deep");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_come_from_the_tree),
        cmocka_unit_test(test_raw_parameters_belong_to_their_container),
        cmocka_unit_test(test_tied_weights_are_noticed),
        cmocka_unit_test(test_plain_counts_follow_from_arguments),
        cmocka_unit_test(test_repeats_are_written_out),
        cmocka_unit_test(test_constructor_arguments),
        cmocka_unit_test(test_raw_parameters_count_whatever_the_printed_total),
        cmocka_unit_test(test_shared_modules_count_once),
        cmocka_unit_test(test_repeated_blocks_with_counts),
        cmocka_unit_test(test_hugging_face_conv1d_is_linear),
        cmocka_unit_test(test_one_layer_alone),
        cmocka_unit_test(test_uncounted_layers_are_told),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_bombs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
