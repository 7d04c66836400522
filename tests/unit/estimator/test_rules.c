/* SPDX-License-Identifier: Apache-2.0 */
/* What the shapes and types of a summary show of the code between its layers: each rule on a small
 * text that shows it, and on one that does not. */
#include "tape_case.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "model/input_shape.h"

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

/* Four heads over 64 tokens, whose scores a linear layer mixes: it reads them in another layout,
 * and in 32 bit the product reads its result. */
static void test_mixed_scores(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, 64, 32]  --\n├─Conv2d: 1-1  [-1, 32, 8, 8]  896\n├─LayerNorm: 1-3  [-1, 64, 32]  64\n"
        "├─Attention: 1-2  [-1, 64, 32]  --\n│    ├─Linear (qkv): 2-1  [-1, 64, 96]  3,168\n"
        "%s│    ├─Dropout: 2-3  [-1, 4, 64, 64]  --\n"
        "│    ├─Linear (proj): 2-4  [-1, 64, 32]  1,056\n====\n";
    char plain[512], mixed[512];
    snprintf(plain, sizeof plain, form, "");
    snprintf(mixed, sizeof mixed, form, "│    ├─Linear (mix): 2-2  [-1, 64, 64, 4]  20\n");
    const double scores = 4 * 64 * 64 * 4, result = 64 * 32 * 4;
    double more = saved_by(mixed) - saved_by(plain);
    assert_true(fabs(more - 2 * scores) <= result);
}

/* Attention over all tokens of an image that uses its projection as a function: the biases are the
 * mask of a fused kernel. Over a map, windows of it store their scores. */
static void test_biases_as_a_mask(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, %s, 64]  --\n├─Conv2d: 1-1  [-1, 64, 14, 14]  1,792\n"
        "├─LayerNorm: 1-2  [-1, %s, 64]  128\n├─Attention: 1-3  [-1, %s, 64]  729\n"
        "│    ├─Linear (qkv): 2-1  --  12,288\n"
        "│    ├─Linear (proj): 2-2  [-1, %s, 64]  4,160\n====\n";
    char tokens[512], map[512];
    snprintf(tokens, sizeof tokens, form, "196", "196", "196", "196");
    snprintf(map, sizeof map, form, "14, 14", "14, 14", "14, 14", "14, 14");
    const double result = 196 * 64 * 4, softmax = 196 * 2 * 49 * 4, statistics = 196 * 4;
    assert_true(saved_by(map) - saved_by(tokens) == result + softmax - statistics);
}

/* A projection to twice the width, in a module that learns biases: keys are narrower than values.
 * Stored scores of 4 heads, and the products' copies of query, key and value, and their result. */
static void test_narrow_keys(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, 64, 32]  --\n├─Conv2d: 1-1  [-1, 32, 8, 8]  896\n"
        "├─LayerNorm: 1-2  [-1, 64, 32]  64\n├─%s: 1-3  [-1, 64, 32]  256\n"
        "│    ├─Linear (qkv): 2-1  [-1, 64, 64]  2,112\n"
        "│    ├─LayerNorm: 2-2  [-1, 64, 64]  128\n"
        "│    ├─Linear (proj): 2-3  [-1, 64, 32]  1,024\n====\n";
    char plain[512], attention[512];
    snprintf(plain, sizeof plain, form, "Mixer");
    snprintf(attention, sizeof attention, form, "Attention");
    const double scores = 4 * 64 * 64 * 4, copies = 64 * 64 * 4, result = 64 * 32 * 4;
    double more = saved_by(attention) - saved_by(plain);
    assert_true(fabs(more - (scores + copies + result)) <= result);
}

/* A linear layer of 48 inputs after vectors of 32 and 16 reads both side by side. */
static void test_joined_vectors(void **state)
{
    struct built b;
    build("Embedding-1 [-1, 32] 3200\nEmbedding-2 [-1, 16] 1600\nLinear-3 [-1, 8] 392\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 1);
    assert_int_equal(b.tape.doubts.n_guessed, 0);
    const struct op *join = last_of(&b, LAYER_MERGE);
    assert_true(join->inputs[0] == 1 && join->inputs[1] == 0);
    assert_int_equal(last_of(&b, LAYER_LINEAR)->inputs[0], join->output);
    drop(&b);
}

/* Two embedded vectors are joined for a tower; the last layer reads what the tower made beside 16
 * numbers more: their product, which keeps both. */
static void test_factors(void **state)
{
    struct built b;
    build("Embedding-1 [-1, 16] 3200\nEmbedding-2 [-1, 16] 1600\nLinear-3 [-1, 8] 264\n"
          "ReLU-4 [-1, 8] 0\nLinear-5 [-1, 1] 25\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 3); /* two are side by side */
    assert_int_equal(b.tape.doubts.n_guessed, 0);
    const struct op *join = last_of(&b, LAYER_MERGE), *product = join - 1;
    assert_int_equal(join->inputs[1], product->output);
    assert_true(product->keeps_inputs && product->inputs[0] == 1 && product->inputs[1] == 0);
    drop(&b);
}

/* Returns the elements of all outputs of a kind of layer. */
static double elements_of(const struct tape *tape, enum layer_kind kind)
{
    double elements = 0;
    for (size_t i = 0; i < tape->n_ops; i++)
        if (tape->ops[i].kind == kind)
            elements += tape->tensors[tape->ops[i].output].elements;
    return elements;
}

/* 64 places of a map are four samples of 16 tokens for the layers of a block, and a map again for
 * the convolution after it. */
static void test_patches_as_samples(void **state)
{
    struct built b;
    build(TREE "Net: 0-1  [-1, 8, 8, 8]  --\n├─Conv2d: 1-1  [-1, 24, 8, 8]  672\n"
               "├─Sequential: 1-2  [-1, 16, 24]  --\n│    ├─LayerNorm: 2-1  [-1, 16, 24]  48\n"
               "│    ├─Linear: 2-2  [-1, 16, 48]  1,200\n│    ├─GELU: 2-3  [-1, 16, 48]  --\n"
               "│    ├─Linear: 2-4  [-1, 16, 24]  1,176\n├─Conv2d: 1-3  [-1, 8, 8, 8]  192\n====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_true(elements_of(&b.tape, LAYER_NORM) == 64 * 24);
    assert_true(elements_of(&b.tape, LAYER_LINEAR) == 64 * (48 + 24));
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 0);
    assert_int_equal(b.tape.doubts.n_guessed, 0);
    drop(&b);
}

/* The same for windows whose first layer is the projection to query, key and value; tokens of which
 * a layer reads a part are no map. */
static void test_windows_as_samples(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, 8]  --\n├─Conv2d: 1-1  [-1, 24, 8, 8]  672\n"
        "├─LayerNorm: 1-2  [-1, %s, 24]  48\n├─Attention: 1-3  [-1, 16, 24]  --\n"
        "│    ├─Linear (qkv): 2-1  [-1, 16, 72]  1,800\n"
        "│    ├─Linear (proj): 2-2  [-1, 16, 24]  600\n"
        "├─LayerNorm: 1-4  [-1, %s, 24]  48\n====\n";
    char windows[768], tokens[768];
    struct built b;
    snprintf(windows, sizeof windows, form, "8, 8", "8, 8");
    snprintf(tokens, sizeof tokens, form, "64", "16");
    build(windows, (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_true(elements_of(&b.tape, LAYER_LINEAR) == 64 * (72 + 24));
    assert_true(elements_of(&b.tape, LAYER_NORM) == 2 * 64 * 24);
    drop(&b);
    build(tokens, (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_true(elements_of(&b.tape, LAYER_LINEAR) == 16 * (72 + 24));
    drop(&b);
}

/* Windows of 7 x 7 whose places are normalised as tokens are patches with a stride of 4: the image
 * has 64 x 64 pixels. The network ends in a map of 16 x 16, which the loss enlarges to these; what
 * the model returns is the map. Without such patches the image has the sides of the map. */
static void test_labels_for_each_pixel(void **state)
{
    static const char form[] = "Conv2d-1 [-1, 8, 16, 16] 1184\n%s-2 [-1, %s] 16\n"
                               "Conv2d-3 [-1, 8, 16, 16] 584\nConv2d-4 [-1, 5, 16, 16] 45\n";
    char patches[512], windows[512];
    snprintf(patches, sizeof patches, form, "LayerNorm", "256, 8");
    snprintf(windows, sizeof windows, form, "BatchNorm2d", "8, 16, 16");
    struct built b;
    build(patches, (struct estimate_request){.batch = 1}, "sgd", &b);
    const struct tensor *tensors = b.tape.tensors;
    assert_true(tensors[0].is_data && tensors[0].elements == 3 * 64 * 64);
    assert_true(tensors[b.tape.n_tensors - 1].elements == 5 * 64 * 64);
    assert_true(tensors[b.tape.result].elements == 5 * 16 * 16);
    assert_true(b.footprint.loss == 5 * 64 * 64 * 4);
    drop(&b);
    build(windows, (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(b.tape.result, b.tape.n_tensors - 1);
    assert_true(b.footprint.loss == 5 * 16 * 16 * 4);
    drop(&b);
}

/* A shared embedding is listed without a shape before the one that shows 16 tokens. */
static void test_tokens_after_a_shared_embedding(void **state)
{
    struct built b;
    build(TREE "Net: 0-1  [-1, 16, 8]  --\n├─Embedding (shared): 1-1  --  --\n"
               "├─Embedding (tokens): 1-2  [-1, 16, 8]  800\n├─Linear: 1-3  [-1, 16, 8]  72\n"
               "====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_true(b.tape.sequence == 16);
    drop(&b);
}

/* Bytes that a printed network with this attention needs at least, for 8 images of 224 x 224. */
static double floor_with(const char *attention)
{
    char text[1024];
    struct fault fault = {""};
    struct estimate e;
    struct input_shape input;
    struct model *model;
    snprintf(text, sizeof text,
        "Net(\n"
        "  (embed): Conv2d(3, 64, kernel_size=(4, 4), stride=(4, 4))\n"
        "  (norm1): LayerNorm((64,), eps=1e-05, elementwise_affine=True)\n"
        "  (attn): %s(\n"
        "    (qkv): Linear(in_features=64, out_features=192, bias=True)\n"
        "    (proj): Linear(in_features=64, out_features=64, bias=True)\n"
        "  )\n"
        "  (norm2): LayerNorm((64,), eps=1e-05, elementwise_affine=True)\n)\n",
        attention);
    assert_int_equal(model_parse(text, strlen(text), &fault, &model), 0);
    assert_int_equal(input_shape_parse("3x224x224", &fault, &input), 0);
    assert_int_equal(model_set_input(model, &input, &fault), 0);
    struct estimate_request request = {
        .model = model, .batch = 8, .precision = PRECISION_FP32, .optimizer = OPTIMIZER_SGD};
    assert_int_equal(estimate_run("graph", &request, &fault, &e), 0);
    model_destroy(model);
    return e.floor_bytes.value;
}

/* Printed attention within windows: the scores of 2 heads with 49 tokens each are stored for all
 * 3,136 tokens, while other attention over an image is fused. */
static void test_printed_windows(void **state)
{
    const double scores = 8.0 * 56 * 56 * 2 * 49 * 4;
    assert_true(floor_with("ShiftedWindowAttention") >= floor_with("SomeAttention") + 0.9 * scores);
    assert_true(floor_with("ShiftedWindowAttentionV2") > floor_with("ShiftedWindowAttention"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches_are_added),
        cmocka_unit_test(test_branches_read_the_data),
        cmocka_unit_test(test_branches_without_sizes),
        cmocka_unit_test(test_standardized_weights),
        cmocka_unit_test(test_scaled_branches),
        cmocka_unit_test(test_mixed_scores),
        cmocka_unit_test(test_biases_as_a_mask),
        cmocka_unit_test(test_narrow_keys),
        cmocka_unit_test(test_joined_vectors),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_patches_as_samples),
        cmocka_unit_test(test_windows_as_samples),
        cmocka_unit_test(test_labels_for_each_pixel),
        cmocka_unit_test(test_tokens_after_a_shared_embedding),
        cmocka_unit_test(test_printed_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
