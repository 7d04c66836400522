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

/* A script often prints the parameters beside the module. */
static void test_a_list_of_parameters(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (body): Sequential(\n    (0-1): 2 x Block(\n"
        "      (a): Linear(in_features=8, out_features=8, bias=True)\n    )\n  )\n"
        "  (head): Linear(in_features=8, out_features=2, bias=True)\n)\n"
        "body.0.a.weight torch.Size([8, 8]) False\nbody.0.a.bias torch.Size([8]) False\n"
        "body.1.a.weight: True\nhead.weight | True\nhead.bias | False\n"
        "absent.weight False\nthe body is frozen: True\n");
    assert_int_equal(model->layers[3].trainable, TRISTATE_NO);
    assert_int_equal(model->layers[5].trainable, TRISTATE_YES);
    assert_int_equal(layer_called(model, "head")->trainable, TRISTATE_YES);
    assert_int_equal(model->parameters_trained.value, 8 * 8 + 8 + 8 * 2 + 2);
    assert_false(model->trained_is_open);
    model_destroy(model);
}

static void test_odd_lists_of_parameters(void **state)
{
    static const char *const lines[] = {"a.weight", "False", ".. False", "a. True",
        "a.weight False x", "9.weight False", " True", "a.weightFalse"};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        char text[200];
        snprintf(text, sizeof text,
            "Net(\n  (a): Linear(in_features=8, out_features=8, bias=True)\n)\n%s\n", lines[i]);
        struct model *model = parse_text(text);
        assert_false(model->parameters_trained.known);
        model_destroy(model);
    }
}

/* In one line, in several, of PyTorch 1 and 2. */
static void test_parameters_of_dictionaries(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (a): ParameterDict(  (default): Parameter containing: [torch.cuda.FloatTensor of "
        "size 8x100 (cuda:0)])\n"
        "  (b): ParameterList(\n      (0): Parameter containing: [torch.float32 of size 3x4]\n"
        "      (1): Parameter containing: [torch.cuda.FloatTensor of size 5 (GPU 0)]\n  )\n"
        "  (c): ParameterDict()\n"
        "  (d): ParameterDict(  (x): Tensor containing: [torch.FloatTensor of size 9])\n"
        "  (e): Linear(in_features=8, out_features=2, bias=False)\n)\n");
    assert_int_equal(layer_called(model, "a")->parameters, 800);
    assert_int_equal(layer_called(model, "b")->parameters, 17);
    assert_int_equal(layer_called(model, "c")->parameters, 0);
    assert_int_equal(layer_called(model, "d")->parameters, 0);
    assert_int_equal(model->parameters, 800 + 17 + 16);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

static void test_sizes_of_parameters_that_are_none(void **state)
{
    static const char *const sizes[] = {"", "x", "8x", "-3", "99999999999x99999999999"};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        char text[300];
        snprintf(text, sizeof text,
            "Net(\n  (a): ParameterDict(  (default): Parameter containing: [torch.FloatTensor of size "
            "%s])\n  (e): Linear(in_features=8, out_features=2, bias=False)\n)\n",
            sizes[i]);
        struct model *model = parse_text(text);
        assert_true(model->parameters <= 16 + 8);
        model_destroy(model);
    }
}

#define TABLE(TRAINED, FROZEN)                                                                     \
    "----\n        Layer (type)               Output Shape         Param #\n====\n"                \
    "            Linear-1                   [-1, 64]           6,400\n"                            \
    "            Linear-2                   [-1, 10]             650\n====\n"                      \
    "Total params: 7,050\nTrainable params: " TRAINED "\nNon-trainable params: " FROZEN "\n----\n"

/* torchsummary's rows do not say it, but the last layer has just as many. */
static void test_sums_that_fit_the_last_layers(void **state)
{
    struct model *model = parse_text(TABLE("650", "6,400"));
    assert_int_equal(model->parameters_trained.value, 650);
    assert_false(model->trained_is_open);
    model_destroy(model);
}

static void test_sums_that_leave_it_open(void **state)
{
    struct model *model = parse_text(TABLE("100", "6,950"));
    assert_false(model->parameters_trained.known);
    assert_true(model->trained_is_open);
    assert_int_equal(model->layers[0].trainable, TRISTATE_UNKNOWN);
    model_destroy(model);
    model = parse_text(TABLE("7,050", "0"));
    assert_false(model->trained_is_open);
    model_destroy(model);
}

/* Without a total, the class says that the head has the embedding's weight. */
static void test_classes_that_share_the_embedding(void **state)
{
    static const char text[] = "%s(\n  (wte): Embedding(100, 8)\n"
                               "  (head): Linear(in_features=8, out_features=100, bias=False)\n)\n";
    char module[200];
    snprintf(module, sizeof module, text, "GPT2LMHeadModel");
    struct model *model = parse_text(module);
    assert_int_equal(model->parameters, EMBEDDING);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
    snprintf(module, sizeof module, text, "LlamaForCausalLM");
    model = parse_text(module);
    assert_int_equal(model->parameters, 2 * EMBEDDING);
    assert_warning(model, "counted twice");
    model_destroy(model);
}

/* ---- by the number of trained parameters alone ---- */

#define HEADED(BLOCKS)                                                                             \
    "Net(\n  (wte): Embedding(10, 8)\n  (layers): ModuleList(\n" BLOCKS "  )\n"                    \
    "  (head): Linear(in_features=8, out_features=2, bias=True)\n)\n"
#define BLOCKS                                                                                     \
    "    (0-2): 3 x Block(\n      (norm): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"   \
    "      (fc): Linear(in_features=8, out_features=8, bias=True)\n    )\n"
#define ADAPTERS                                                                                   \
    "    (0-2): 3 x Adapter(\n      (layer): Linear(in_features=8, out_features=8, bias=True)\n"   \
    "      (down): Linear(in_features=8, out_features=2, bias=True)\n"                             \
    "      (up): Linear(in_features=2, out_features=8, bias=True)\n    )\n"

enum { TABLE = 80, NORM = 16, FC = 72, NEW_HEAD = 18, BOTTLENECK = 16 + 2 + 16 + 8 };

static struct model *parse_with_sums(const char *text, int64_t trained, int64_t outside)
{
    char all[2000];
    struct model *model = parse_text(text);
    int64_t listed = model->parameters;
    model_destroy(model);
    snprintf(all, sizeof all, "%strainable params: %lld || all params: %lld || trainable%%: 1\n",
        text, (long long)trained, (long long)(listed + outside));
    return parse_text(all);
}

static int count_trained(const struct model *model, const char *name)
{
    int n = 0;
    for (size_t i = 0; i < model->n_layers; i++)
        n += span_is(model->layers[i].name, name) && model->layers[i].trainable == TRISTATE_YES;
    return n;
}

static void test_usual_ways_of_tuning_by_their_sums(void **state)
{
    static const struct {
        const char *text;
        int64_t trained, outside;
        int fc, norm, down, head; /* layers of this name that are trained */
        bool reach_all;
    } cases[] = {
        {HEADED(BLOCKS), NEW_HEAD, 0, 0, 0, 0, 1, false},
        {HEADED(BLOCKS), NORM + FC, 0, 1, 1, 0, 0, false},
        {HEADED(BLOCKS), 2 * (NORM + FC) + NEW_HEAD, 0, 2, 2, 0, 1, false},
        {HEADED(BLOCKS), 3 * NORM, 0, 0, 3, 0, 0, true},
        {HEADED(BLOCKS), 3 * NORM + NEW_HEAD, 0, 0, 3, 0, 1, true},
        {HEADED(BLOCKS), 3 * (8 + 8) + 2, 0, 0, 0, 0, 0, true},        /* biases */
        {HEADED(BLOCKS), 3 * (8 + 8) + NEW_HEAD, 0, 0, 3, 0, 1, true}, /* as many as norms */
        {HEADED(ADAPTERS), 3 * BOTTLENECK, 0, 0, 0, 3, 0, true},
        {HEADED(ADAPTERS), 3 * BOTTLENECK + NEW_HEAD, 0, 0, 0, 3, 1, true},
        {HEADED(BLOCKS), 5 * 8, 5 * 8, 0, 0, 0, 0, true},                     /* a prompt */
        {HEADED(BLOCKS), NORM + FC + 5 + NEW_HEAD, 3 * 5, 1, 1, 0, 1, false}, /* with scales */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct model *model = parse_with_sums(cases[i].text, cases[i].trained, cases[i].outside);
        assert_false(model->trained_is_open);
        assert_int_equal(model->gradients_reach_all, cases[i].reach_all);
        assert_int_equal(count_trained(model, "fc"), cases[i].fc);
        assert_int_equal(count_trained(model, "norm"), cases[i].norm);
        assert_int_equal(count_trained(model, "down"), cases[i].down);
        assert_int_equal(count_trained(model, "head"), cases[i].head);
        assert_int_equal(count_trained(model, "layer"), 0);
        model_destroy(model);
    }
}

static void test_a_sum_that_fits_no_way_stays_open(void **state)
{
    struct model *model = parse_with_sums(HEADED(BLOCKS), 77, 0);
    assert_true(model->trained_is_open);
    assert_false(model->gradients_reach_all);
    assert_false(model->parameters_trained.known);
    model_destroy(model);
    model = parse_with_sums(HEADED(BLOCKS), NORM + FC + 5 + NEW_HEAD, 3 * 10);
    assert_true(model->trained_is_open); /* the block and its scales alone may have as many */
    model_destroy(model);
}

/* A program that takes a shared bias for one that is not trained: no question is asked. */
static void test_nearly_all_are_trained(void **state)
{
    struct model *model = parse_text(
        "Net(\n  (a): Linear(in_features=100, out_features=100, bias=True), 10,100 params\n"
        "  (b): Linear(in_features=100, out_features=100, bias=True), 10,100 params\n"
        "), 20,200 params\nTotal params: 20,200\nTrainable params: 20,150\n"
        "Non-trainable params: 50\n");
    assert_false(model->trained_is_open);
    assert_false(model->parameters_trained.known);
    assert_int_equal(layer_called(model, "a")->trainable, TRISTATE_UNKNOWN);
    model_destroy(model);
    model = parse_text(/* counted at every level, with a mask that is no parameter */
        "Net(\n  (a): Linear(in_features=100, out_features=100, bias=True), 10,100 params\n"
        "), 10,100 params\nTotal params: 30,200\nTrainable params: 20,200\n"
        "Non-trainable params: 10,000\n");
    assert_false(model->trained_is_open);
    model_destroy(model);
}

/* Two weights of 4 bit count as one where a program counts what is stored; and a later summary's
 * rounded total does not count. */
static void test_totals_of_packed_and_of_rounded_weights(void **state)
{
    struct model *model = parse_text(
        "trainable params: 48 || all params: 1,064 || trainable%: 4.5\n" ADAPTED("Linear4bit"));
    assert_int_equal(layer_called(model, "head")->parameters, 0);
    model_destroy(model);
    model = parse_text("trainable params: 48 || all params: 1,128 || trainable%: 4.2553\n" ADAPTED(
        "Linear") "Trainable params: 48\nTotal params: 1 K\n");
    assert_int_equal(layer_called(model, "head")->parameters, 0);
    model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adapters_alone_are_trained),
        cmocka_unit_test(test_usual_ways_of_tuning_by_their_sums),
        cmocka_unit_test(test_a_sum_that_fits_no_way_stays_open),
        cmocka_unit_test(test_nearly_all_are_trained),
        cmocka_unit_test(test_totals_of_packed_and_of_rounded_weights),
        cmocka_unit_test(test_a_printed_total_shows_shared_weights),
        cmocka_unit_test(test_quantised_layers),
        cmocka_unit_test(test_names_of_quantised_layers),
        cmocka_unit_test(test_quantised_layers_without_adapters),
        cmocka_unit_test(test_a_module_without_adapters_says_nothing),
        cmocka_unit_test(test_a_table_of_frozen_layers),
        cmocka_unit_test(test_a_list_of_parameters),
        cmocka_unit_test(test_odd_lists_of_parameters),
        cmocka_unit_test(test_parameters_of_dictionaries),
        cmocka_unit_test(test_sizes_of_parameters_that_are_none),
        cmocka_unit_test(test_sums_that_fit_the_last_layers),
        cmocka_unit_test(test_sums_that_leave_it_open),
        cmocka_unit_test(test_classes_that_share_the_embedding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
