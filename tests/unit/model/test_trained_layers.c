/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers of a network are trained, by its text. */
#include "unit.h"

#include "base/array.h"

/* A language model of one layer with an adapter, as PEFT prints it. */
#define ADAPTED(TYPE)                                                                              \
    "PeftModel(\n  (base_model): LoraModel(\n    (model): Net(\n"                                  \
    "      (wte): Embedding(100, 8)\n"                                                             \
    "      (proj): lora." TYPE "(\n"                                                               \
    "        (base_layer): " TYPE "(in_features=8, out_features=16, bias=True)\n"                  \
    "        (lora_dropout): ModuleDict(\n          (default): Dropout(p=0.1, inplace=False)\n"    \
    "        )\n"                                                                                  \
    "        (lora_A): ModuleDict(\n"                                                              \
    "          (default): Linear(in_features=8, out_features=2, bias=False)\n        )\n"          \
    "        (lora_B): ModuleDict(\n"                                                              \
    "          (default): Linear(in_features=2, out_features=16, bias=False)\n        )\n"         \
    "        (lora_embedding_A): ParameterDict()\n        (lora_embedding_B): ParameterDict()\n"   \
    "        (lora_magnitude_vector): ModuleDict()\n      )\n"                                     \
    "      (back): Linear(in_features=16, out_features=8, bias=True)\n"                            \
    "      (head): Linear(in_features=8, out_features=100, bias=False)\n"                          \
    "    )\n  )\n)\n"

enum { EMBEDDING = 800, PROJECTION = 8 * 16 + 16, BACK = 16 * 8 + 8, ADAPTER = 2 * 8 + 2 * 16 };

static void test_adapters_alone_are_trained(void **state)
{
    struct model *model = parse_text(ADAPTED("Linear"));
    assert_true(model->parameters_trained.known);
    assert_int_equal(model->parameters_trained.value, ADAPTER);
    assert_int_equal(model->parameters, 2 * EMBEDDING + PROJECTION + BACK + ADAPTER);
    assert_int_equal(layer_called(model, "base_layer")->trainable, TRISTATE_NO);
    assert_int_equal(layer_called(model, "head")->trainable, TRISTATE_NO);
    assert_int_equal(model->n_leaves_unknown, 0); /* empty dictionaries are no layers */
    assert_false(model->is_quantised);
    assert_warning(model, "head has the embedding's size");
    model_destroy(model);
}

static void test_a_printed_total_shows_shared_weights(void **state)
{
    struct model *model = parse_text(
        "trainable params: 48 || all params: 1,128 || trainable%: 4.2553\n" ADAPTED("Linear"));
    assert_int_equal(model->parameters, EMBEDDING + PROJECTION + BACK + ADAPTER);
    assert_int_equal(layer_called(model, "head")->parameters, 0);
    assert_int_equal(model->parameters_trained.value, ADAPTER);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
    model = parse_text(
        "trainable params: 48 || all params: 1,928 || trainable%: 2.4896\n" ADAPTED("Linear"));
    assert_int_equal(layer_called(model, "head")->parameters, EMBEDDING);
    model_destroy(model);
}

static void test_quantised_layers(void **state)
{
    struct model *model = parse_text(ADAPTED("Linear4bit"));
    assert_true(model->is_quantised);
    assert_int_equal(layer_called(model, "base_layer")->weight_bits, 4);
    assert_int_equal(layer_called(model, "base_layer")->parameters, PROJECTION);
    assert_int_equal(layer_called(model, "wte")->weight_bits, 0);
    assert_int_equal(model->parameters_trained.value, ADAPTER);
    model_destroy(model);
    model = parse_text(ADAPTED("Linear8bitLt"));
    assert_int_equal(layer_called(model, "base_layer")->weight_bits, 8);
    model_destroy(model);
}

static void test_names_of_quantised_layers(void **state)
{
    static const char *const types[] = {
        "QuantLinear", "TritonV2QuantLinear", "MarlinQuantLinear", "WQLinear_GEMVFast"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        char text[200];
        snprintf(text, sizeof text,
            "Net(\n  (a): %s(in_features=8, out_features=8, bias=False)\n)\n", types[i]);
        struct model *model = parse_text(text);
        assert_int_equal(layer_called(model, "a")->weight_bits, 4);
        assert_int_equal(layer_called(model, "a")->kind, LAYER_LINEAR);
        model_destroy(model);
    }
}

/* Printed before its adapters were added. */
static void test_quantised_layers_without_adapters(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (a): Linear4bit(in_features=8, out_features=8, bias=False)\n"
        "  (b): Linear(in_features=8, out_features=8, bias=False)\n)\n");
    assert_int_equal(model->parameters_trained.value, 64);
    assert_warning(model, "print the module after they are added");
    model_destroy(model);
}

static void test_a_module_without_adapters_says_nothing(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (a): Linear(in_features=8, out_features=8, bias=False)\n)\n");
    assert_false(model->parameters_trained.known);
    assert_int_equal(layer_called(model, "a")->trainable, TRISTATE_UNKNOWN);
    model_destroy(model);
}

/* torchinfo's parentheses. */
static void test_a_table_of_frozen_layers(void **state)
{
    struct model *model = parse_text(
        "Layer (type:depth-idx)  Output Shape  Param #\n====\n"
        "Net  [1, 10]  --\n├─Linear: 1-1  [1, 64]  (6,400)\n├─Linear: 1-2  [1, 10]  640\n====\n"
        "Total params: 7,040\nTrainable params: 640\nNon-trainable params: 6,400\n");
    assert_int_equal(model->parameters, 7040);
    assert_int_equal(model->parameters_trained.value, 640);
    model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adapters_alone_are_trained),
        cmocka_unit_test(test_a_printed_total_shows_shared_weights),
        cmocka_unit_test(test_quantised_layers),
        cmocka_unit_test(test_names_of_quantised_layers),
        cmocka_unit_test(test_quantised_layers_without_adapters),
        cmocka_unit_test(test_a_module_without_adapters_says_nothing),
        cmocka_unit_test(test_a_table_of_frozen_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
