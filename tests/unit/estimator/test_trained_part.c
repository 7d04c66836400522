/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of which only a part is trained. */
#include "tape_case.h"

#include <math.h>

/* Linear 64 -> 64 and ReLU, twice, and Linear 64 -> 10; counts in parentheses are not trained. */
#define CHAIN(FIRST, SECOND)                                                                       \
    TREE "Net: 0-1  [1, 10]  --\n"                                                                 \
         "├─Linear: 1-1  [1, 64]  " FIRST "\n"                                                     \
         "├─ReLU: 1-2  [1, 64]  --\n"                                                          \
         "├─Linear: 1-3  [1, 64]  " SECOND "\n"                                                    \
         "├─ReLU: 1-4  [1, 64]  --\n"                                                          \
         "├─Linear: 1-5  [1, 10]  650\n====\n"

enum { WIDTH_BYTES = 64 * 4, HIDDEN = 64 * 64 + 64, HEAD = 650 };

static struct built built_of(const char *text, enum precision precision)
{
    struct built b;
    build(text,
        (struct estimate_request){.batch = 8, .sequence_length = 16, .precision = precision},
        "adam", &b);
    return b;
}

/* What is kept: of the trained network the inputs of three linear layers, of which the first is the
 * batch; then the input of the last alone. */
static void test_nothing_is_kept_before_the_first_trained_layer(void **state)
{
    struct built all = built_of(CHAIN("4,160", "4,160"), PRECISION_FP32),
                 last = built_of(CHAIN("(4,160)", "(4,160)"), PRECISION_FP32);
    assert_true(all.footprint.saved == 8 * 2 * WIDTH_BYTES);
    assert_true(last.footprint.saved == 8 * WIDTH_BYTES);
    assert_true(last.footprint.gradients == HEAD * 4.0);
    assert_true(last.footprint.states == 2 * HEAD * 4.0);
    assert_true(last.footprint.weights == (2 * HIDDEN + HEAD) * 4.0);
    assert_true(all.footprint.gradients == (2 * HIDDEN + HEAD) * 4.0);
    assert_true(last.footprint.live < all.footprint.live);
    drop(&all);
    drop(&last);
}

/* Gradients flow through a layer that is not trained: the ReLU before it keeps its output, and the
 * layer needs no input. */
static void test_gradients_flow_through_a_frozen_layer(void **state)
{
    struct built b = built_of(CHAIN("4,160", "(4,160)"), PRECISION_FP32);
    const struct op *second = &b.tape.ops[b.tape.n_ops - 3];
    assert_int_equal(second->kind, LAYER_LINEAR);
    assert_true(second->frozen);
    assert_false(second->keeps_inputs);
    assert_false(b.tape.tensors[second->output].needs_no_gradient);
    assert_true(b.footprint.saved == 8 * 2 * WIDTH_BYTES);
    assert_true(b.footprint.gradients == (HIDDEN + HEAD) * 4.0);
    drop(&b);
}

/* A convolution does, though only the gradient of its input is computed. */
static void test_a_frozen_convolution_keeps_its_input(void **state)
{
    struct built b = built_of(TREE
        "Net: 0-1  [1, 8, 6, 6]  --\n├─Conv2d: 1-1  [1, 8, 6, 6]  216\n"
        "├─Conv2d: 1-2  [1, 8, 6, 6]  (576)\n├─Conv2d: 1-3  [1, 8, 6, 6]  (576)\n====\n",
        PRECISION_FP32);
    assert_true(b.footprint.saved == 8 * 2 * 8 * 6 * 6 * 4.0);
    assert_true(b.footprint.gradients == 216 * 4.0);
    drop(&b);
}

/* A layer with an adapter in front of another linear layer. */
#define ADAPTED(TYPE)                                                                              \
    "PeftModel(\n  (wte): Embedding(100, 64)\n"                                                    \
    "  (proj): lora." TYPE "(\n"                                                                   \
    "    (base_layer): " TYPE "(in_features=64, out_features=64, bias=False)\n"                    \
    "    (lora_dropout): ModuleDict(\n      (default): Dropout(p=0.1, inplace=False)\n    )\n"     \
    "    (lora_A): ModuleDict(\n"                                                                  \
    "      (default): Linear(in_features=64, out_features=4, bias=False)\n    )\n"                 \
    "    (lora_B): ModuleDict(\n"                                                                  \
    "      (default): Linear(in_features=4, out_features=64, bias=False)\n    )\n"                 \
    "    (lora_embedding_A): ParameterDict()\n  )\n"                                               \
    "  (head): Linear(in_features=64, out_features=100, bias=True)\n)\n"

enum { TOKENS = 8 * 16, RANK_BYTES = 4 * 4, ADAPTER = 2 * 4 * 64, BASE = 64 * 64 };

/* The adapter reads what its layer reads. Kept are the inputs of A and of B. Nothing before A is
 * trained, so dropout keeps no mask; the head is not, so it needs no input. */
static void test_an_adapter_stands_beside_its_layer(void **state)
{
    struct built b = built_of(ADAPTED("Linear"), PRECISION_FP32);
    const struct op *base = NULL, *low = NULL, *sum = last_of(&b, LAYER_MERGE);
    for (size_t i = 0; i < b.tape.n_ops; i++) {
        const struct op *op = &b.tape.ops[i];
        if (op->kind == LAYER_LINEAR && op->weight == BASE)
            base = op;
        if (op->kind == LAYER_DROPOUT)
            low = op;
    }
    assert_non_null(base);
    assert_non_null(low);
    assert_int_equal(base->inputs[0], low->inputs[0]);
    assert_int_equal(sum->inputs[0], base->output);
    assert_int_equal(last_of(&b, LAYER_LINEAR)->inputs[0], sum->output);
    assert_true(b.footprint.saved == TOKENS * (WIDTH_BYTES + RANK_BYTES));
    assert_true(b.footprint.states == 2 * ADAPTER * 4.0);
    drop(&b);
}

/* 4 bit with a constant of 32 bit for each 64 weights; the other frozen weights in 16 bit. */
static void test_quantised_weights(void **state)
{
    struct built b = built_of(ADAPTED("Linear4bit"), PRECISION_BF16);
    double others = 100 * 64 + 6500;
    double bytes = BASE * (0.5 + 4.0 / 64) + others * 2 + ADAPTER * 4;
    assert_true(fabs(b.footprint.weights - bytes) < 1);
    assert_true(b.footprint.gradients == ADAPTER * 4.0);
    drop(&b);
    b = built_of(ADAPTED("Linear8bitLt"), PRECISION_BF16);
    assert_true(fabs(b.footprint.weights - (bytes + BASE * 0.5)) < 1);
    drop(&b);
    b = built_of(ADAPTED("Linear4bit"), PRECISION_NOT_GIVEN);
    assert_true(b.tape.autocast); /* 16 bit, as its weights are unpacked to */
    drop(&b);
}

/* Attention whose projections are no layers: its weights are stored in 16 bit, too. */
static void test_attention_of_a_quantised_network(void **state)
{
    static const char with_attention[] =
        "PeftModel(\n  (wte): Embedding(100, 64)\n"
        "  (attn): MultiheadAttention(\n    (out_proj): NonDynamicallyQuantizableLinear("
        "in_features=64, out_features=64, bias=True)\n  )\n"
        "  (base_layer): Linear4bit(in_features=64, out_features=64, bias=False)\n"
        "  (lora_A): Linear(in_features=64, out_features=4, bias=False)\n)\n";
    struct built b = built_of(with_attention, PRECISION_BF16);
    double attention = 4 * (64 * 64 + 64);
    double bytes = BASE * (0.5 + 4.0 / 64) + (100 * 64 + attention) * 2 + ADAPTER / 2 * 4;
    assert_true(fabs(b.footprint.weights - bytes) < 1);
    drop(&b);
}

/* Weights, gradients and states in 16 bit; the adapter's in 32, and so is what it reads. */
static void test_weights_of_16_bit(void **state)
{
    struct built b = built_of(ADAPTED("Linear"), PRECISION_BF16_TRUE);
    double others = BASE + 100 * 64 + 6500;
    assert_true(b.footprint.weights == others * 2 + ADAPTER * 4);
    assert_true(b.footprint.gradients == ADAPTER * 4.0);
    assert_true(b.footprint.states == 2 * ADAPTER * 4.0);
    const struct op *low = NULL;
    for (size_t i = 0; i < b.tape.n_ops; i++)
        if (b.tape.ops[i].kind == LAYER_DROPOUT)
            low = &b.tape.ops[i];
    assert_non_null(low);
    assert_int_equal(b.tape.tensors[low->output].element_bytes, SINGLE_BYTES);
    assert_int_equal(b.tape.tensors[last_of(&b, LAYER_LINEAR)->output].element_bytes, HALF_BYTES);
    assert_false(b.tape.autocast);
    drop(&b);
    b = built_of(CHAIN("4,160", "4,160"), PRECISION_FP16_TRUE);
    assert_true(b.footprint.weights == (2 * HIDDEN + HEAD) * 2.0);
    assert_true(b.footprint.states == 2 * (2 * HIDDEN + HEAD) * 2.0);
    drop(&b);
}

/* Layers of own classes, whose first one is called otherwise than in PEFT, and two of which stand
 * beside each other: each adapter reads what its layer reads. */
static void test_adapters_of_own_classes(void **state)
{
#define OWN(NAME, IN, OUT)                                                                         \
    "    (" NAME "): LowRank(\n      (base): Linear(in_features=" IN ", out_features=" OUT         \
    ", bias=False)\n      (lora_A): Linear(in_features=" IN ", out_features=4, bias=False)\n"      \
    "      (lora_B): Linear(in_features=4, out_features=" OUT ", bias=False)\n    )\n"
    struct built b = built_of(
        "Net(\n  (wte): Embedding(100, 64)\n  (attn): SelfAttention(\n" OWN("q", "64", "64")
            OWN("k", "64", "32") OWN("v", "64", "32") OWN("o", "64", "64") "  )\n)\n",
        PRECISION_FP32);
    int table = b.tape.ops[0].output, read_table = 0;
    for (size_t i = 1; i < b.tape.n_ops; i++)
        read_table += b.tape.ops[i].kind == LAYER_LINEAR && b.tape.ops[i].inputs[0] == table;
    assert_int_equal(read_table, 6); /* query, key, value, and their adapters */
    assert_int_equal(count_kind(&b.tape, LAYER_ATTENTION), 1);
    drop(&b);
}

/* Three blocks of equal size: without checkpointing each keeps its inner maps, with it one does. */
static void test_checkpointing_keeps_the_inputs_of_blocks(void **state)
{
    static const char net[] =
        "Net(\n  (wte): Embedding(100, 64)\n  (layers): ModuleList(\n    (0-7): 8 x Block(\n"
        "      (up): Linear(in_features=64, out_features=6400, bias=False)\n      (act): GELU()\n"
        "      (down): Linear(in_features=6400, out_features=64, bias=False)\n    )\n  )\n)\n";
    struct estimate_request request = {
        .batch = 64, .sequence_length = 1024, .precision = PRECISION_FP32};
    struct built all, again;
    build(net, request, "sgd", &all);
    request.checkpointing = true;
    build(net, request, "sgd", &again);
    double tokens = 64 * 1024, inner = tokens * 6400 * 4, outer = tokens * 64 * 4;
    assert_int_equal(again.tape.n_recomputed, 8);
    assert_true(all.footprint.live > 8 * 2 * inner);
    assert_true(again.footprint.live < 4 * inner + 12 * outer);
    assert_true(again.footprint.live > 2 * inner + 8 * outer);
    drop(&all);
    drop(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_kept_before_the_first_trained_layer),
        cmocka_unit_test(test_gradients_flow_through_a_frozen_layer),
        cmocka_unit_test(test_a_frozen_convolution_keeps_its_input),
        cmocka_unit_test(test_an_adapter_stands_beside_its_layer),
        cmocka_unit_test(test_quantised_weights),
        cmocka_unit_test(test_weights_of_16_bit),
        cmocka_unit_test(test_adapters_of_own_classes),
        cmocka_unit_test(test_checkpointing_keeps_the_inputs_of_blocks),
        cmocka_unit_test(test_attention_of_a_quantised_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
