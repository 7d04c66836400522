/* SPDX-License-Identifier: Apache-2.0 */
/* The physics of a training step, on networks small enough to be counted by hand. */
#include "tape_case.h"

#include <math.h>
#include <stdio.h>

#include "base/array.h"
#include "base/units.h"
#include "estimator/physics/pipeline_stage.h"
#include "estimator/physics/recurrent.h"
#include "estimator/physics/saved_tensors.h"
#include "estimator/physics/tensor_split.h"
#include "model/input_shape.h"

/* One linear layer of 4096 x 4096: 64 MiB. Weight, gradient, two states, and one temporary of Adam.
 */
static void test_optimizers(void **state)
{
    static const struct {
        const char *optimizer;
        double sets;
    } cases[] = {{"sgd", 2}, {"momentum", 3}, {"adam", 5}, {"adamw", 5}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct built b;
        build("Linear-1 [-1, 4096] 16777216\n", (struct estimate_request){.batch = 1},
            cases[i].optimizer, &b);
        double sets = b.footprint.reserved / (64.0 * MIB);
        assert_true(sets >= cases[i].sets && sets < cases[i].sets + 0.1);
        drop(&b);
    }
}

/* Returns the sets of 64 MiB that one of several processes holds. */
static double sets_of(const char *text, enum parallel parallel, int gpus)
{
    struct built b;
    build(text, (struct estimate_request){.batch = 1, .gpus = gpus, .parallel = parallel}, "adam",
        &b);
    double sets = b.footprint.reserved / (64.0 * MIB);
    drop(&b);
    return sets;
}

/* Two layers whose weights are a set each: weights, gradients, two states and a temporary are ten
 * sets, and buckets two more. A divided gradient is whole at first. */
static void test_several_gpus(void **state)
{
    static const char text[] = "Linear-1 [-1, 4096] 16777216\nLinear-2 [-1, 4096] 16777216\n";
    static const struct {
        enum parallel parallel;
        int gpus;
        double sets;
    } cases[] = {
        {PARALLEL_FSDP, 1, 10}, {PARALLEL_NONE, 4, 10}, {PARALLEL_NOT_GIVEN, 4, 12}, /* DDP */
        {PARALLEL_DDP, 4, 12}, {PARALLEL_ZERO1, 2, 2 + 2 + 2 + 2 + 1},
        {PARALLEL_ZERO1, 4, 2 + 2 + 2 + 1 + 0.5}, {PARALLEL_ZERO2, 4, 2 + 0.5 + 1 + 0.5 + 1},
        {PARALLEL_FSDP, 4, 0.5 + 0.5 + 1 + 2 + 2 + 1}, /* and the unit with its gradient */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double sets = sets_of(text, cases[i].parallel, cases[i].gpus);
        assert_true(sets >= cases[i].sets && sets < cases[i].sets + 0.2);
    }
}

/* The unit of FSDP is the repeated block, here a set: two are gathered at a time, and one gradient,
 * so that many processes hold little more than these. */
static void test_units_are_repeated_blocks(void **state)
{
    static const char blocks[] = TREE
        "Net: 0-1  [-1, 4096]  --\n├─Block: 1-1  [-1, 4096]  --\n"
        "│    ├─Linear: 2-1  [-1, 4096]  16,777,216\n├─Block: 1-2  [-1, 4096]  --\n"
        "│    ├─Linear: 2-2  [-1, 4096]  16,777,216\n├─Block: 1-3  [-1, 4096]  --\n"
        "│    ├─Linear: 2-3  [-1, 4096]  16,777,216\n====\n";
    double sets = sets_of(blocks, PARALLEL_FSDP, 1024);
    assert_true(sets >= 3 + 1 && sets < 3 + 1 + 0.2);
}

/* States on the host leave weights and gradients. FSDP's part is then on the host, too: two units
 * and a unit's gradient remain. */
static void test_offload(void **state)
{
    static const char text[] = "Linear-1 [-1, 4096] 16777216\nLinear-2 [-1, 4096] 16777216\n";
    static const struct {
        struct estimate_request request;
        double sets;
    } cases[] = {
        {{.gpus = 1, .offload = OFFLOAD_OPTIMIZER}, 4},
        {{.gpus = 4, .offload = OFFLOAD_OPTIMIZER}, 6},
        {{.gpus = 4, .parallel = PARALLEL_ZERO2, .offload = OFFLOAD_OPTIMIZER}, 2 + 0.5 + 1},
        {{.gpus = 4, .parallel = PARALLEL_FSDP, .offload = OFFLOAD_PARAMETERS}, 2 + 2 + 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct built b;
        struct estimate_request request = cases[i].request;
        request.batch = 1;
        build(text, request, "adam", &b);
        double sets = b.footprint.reserved / (64.0 * MIB);
        assert_true(sets >= cases[i].sets && sets < cases[i].sets + 0.2);
        drop(&b);
    }
}

/* Four blocks of two products, each a set, behind one of a set and before a small head. */
static const char four_blocks[] = TREE
    "Net: 0-1  [-1, 4096]  --\n├─Linear: 1-1  [-1, 4096]  16,777,216\n"
    "├─Block: 1-2  [-1, 4096]  --\n│    ├─Linear: 2-1  [-1, 4096]  16,777,216\n"
    "│    ├─Linear: 2-2  [-1, 4096]  16,777,216\n"
    "├─Block: 1-3  [-1, 4096]  --\n│    ├─Linear: 2-3  [-1, 4096]  16,777,216\n"
    "│    ├─Linear: 2-4  [-1, 4096]  16,777,216\n"
    "├─Block: 1-4  [-1, 4096]  --\n│    ├─Linear: 2-5  [-1, 4096]  16,777,216\n"
    "│    ├─Linear: 2-6  [-1, 4096]  16,777,216\n"
    "├─Block: 1-5  [-1, 4096]  --\n│    ├─Linear: 2-7  [-1, 4096]  16,777,216\n"
    "│    ├─Linear: 2-8  [-1, 4096]  16,777,216\n"
    "├─Linear: 1-6  [-1, 16]  65,536\n====\n";

/* Of tensor parallelism by four the eight products of blocks leave two sets, and the others stay.
 */
static void test_tensor_parallelism(void **state)
{
    struct built b;
    double divided;
    build(four_blocks, (struct estimate_request){.batch = 1}, "adam", &b);
    assert_int_equal(tensor_split(&b.tape, b.model, 4, &divided), 0);
    assert_true(divided == 8 * 16777216.0);
    assert_true(b.tape.parameters == 3 * 16777216.0 + 65536);
    struct footprint footprint;
    struct fault fault = {0};
    assert_int_equal(allocator_replay_tape(
                         &b.tape, optimizer_traits(OPTIMIZER_ADAM), &bare, 0, &fault, &footprint),
        0);
    double sets = footprint.reserved / (64.0 * MIB);
    assert_true(sets >= 3 * 5 && sets < 3 * 5 + 0.5);
    size_t parts = 0;
    for (size_t i = 0; i < b.tape.n_ops; i++)
        parts += b.tape.tensors[b.tape.ops[i].output].elements == 1024;
    assert_int_equal(parts, 4); /* the first product of each block; the second adds up */
    drop(&b);
}

static double pipeline_sets(int64_t batch, int stages, int micro_batches, int *ret_stage)
{
    struct built b;
    struct footprint footprint;
    struct fault fault = {0};
    const struct pipeline pipeline = {stages, micro_batches};
    build(four_blocks, (struct estimate_request){.batch = batch}, "adam", &b);
    assert_int_equal(pipeline_replay(&b.tape, b.model, &pipeline, optimizer_traits(OPTIMIZER_ADAM),
                         &bare, 0, &fault, &footprint, ret_stage),
        0);
    drop(&b);
    return footprint.reserved / (64.0 * MIB);
}

/* Two of the blocks and the product before them, five sets, are the larger of two stages; one block
 * and that product, three, of four stages. Maps of a batch of one are nothing beside that. */
static void test_stages_of_a_pipeline(void **state)
{
    int stage;
    double two = pipeline_sets(1, 2, 1, &stage), four = pipeline_sets(1, 4, 1, &stage);
    assert_true(two >= 5 * 5 && two < 5 * 5 + 0.5);
    assert_true(four >= 3 * 5 && four < 3 * 5 + 0.5);
    assert_int_equal(stage, 1);
}

/* A map of a batch of 16,384 is four sets. The first of four stages begins four micro-batches
 * before its first backward pass: the whole batch, or with 16 micro-batches a quarter of it. */
static void test_micro_batches_in_flight(void **state)
{
    int stage;
    double one = pipeline_sets(16384, 4, 1, &stage), four = pipeline_sets(16384, 4, 4, &stage),
           sixteen = pipeline_sets(16384, 4, 16, &stage);
    assert_true(one > sixteen + 1 && four > sixteen + 1);
    /* What is received, and the gradients, are there for all micro-batches in each case. */
    assert_true(sixteen > 3 * 5 + 4);
}

/* Convolution, normalisation, activation: the convolution's output and the normalisation's are
 * kept, nothing else. */
static void test_saved_maps(void **state)
{
    struct built b;
    const double map = 64.0 * 32 * 32 * 4 * 16;
    build(
        "Conv2d-1 [-1, 64, 32, 32] 1728\nBatchNorm2d-2 [-1, 64, 32, 32] 128\nReLU-3 [-1, 64, 32, 32] 0\n"
        "Conv2d-4 [-1, 64, 32, 32] 36864\n",
        (struct estimate_request){.batch = 16}, "sgd", &b);
    assert_true(b.footprint.saved == 2 * map);
    assert_true(b.footprint.largest_map == map);
    drop(&b);
    build(
        "Conv2d-1 [-1, 64, 32, 32] 1728\nBatchNorm2d-2 [-1, 64, 32, 32] 128\nReLU6-3 [-1, 64, 32, 32] 0\n"
        "Conv2d-4 [-1, 64, 32, 32] 36864\n",
        (struct estimate_request){.batch = 16}, "sgd", &b);
    assert_true(b.footprint.saved == 3 * map);
    drop(&b);
}

static void test_hidden_concatenation(void **state)
{
    struct built b;
    build(
        "Conv2d-1 [-1, 16, 8, 8] 448\nConv2d-2 [-1, 16, 8, 8] 2320\nBatchNorm2d-3 [-1, 32, 8, 8] 64\n",
        (struct estimate_request){.batch = 4}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 1);
    assert_int_equal(b.tape.doubts.n_merges, 1);
    drop(&b);
}

/* The short cut of a residual block is applied to the block's input, not to what stands above it.
 */
static void test_short_cut(void **state)
{
    struct built b;
    build(
        "Conv2d-1 [-1, 64, 8, 8] 1728\nConv2d-2 [-1, 256, 8, 8] 147456\nConv2d-3 [-1, 256, 8, 8] 16384\n",
        (struct estimate_request){.batch = 4}, "sgd", &b);
    assert_int_equal(b.tape.ops[2].inputs[0], 1);
    assert_int_equal(b.tape.ops[3].inputs[0], 1);
    assert_true(b.tape.ops[2].window == 9 && b.tape.ops[3].window == 1);
    drop(&b);
}

/* 9 weights per channel are a window of 3 x 3 over grey images, not one of 3 x 1 over coloured
 * ones. */
static void test_grey_images(void **state)
{
    struct built b;
    build("Conv2d-1 [-1, 64, 8, 8] 576\nConv2d-2 [-1, 64, 8, 8] 37440\n",
        (struct estimate_request){.batch = 4}, "sgd", &b);
    assert_true(b.tape.tensors[0].first == 1);
    assert_int_equal(
        b.tape.doubts.n_merges, 1); /* 65 channels: the first layer's output and the image */
    drop(&b);
}

static void test_depthwise(void **state)
{
    struct built b;
    build("Conv2d-1 [-1, 32, 8, 8] 864\nConv2d-2 [-1, 32, 8, 8] 288\n",
        (struct estimate_request){.batch = 4}, "sgd", &b);
    assert_true(b.tape.ops[2].depthwise && b.tape.ops[2].window == 9);
    assert_true(b.tape.ops[0].kind == LAYER_INPUT && b.tape.tensors[0].first == 3 &&
                b.tape.ops[1].window == 9);
    drop(&b);
}

/* The image behind a first convolution: patches do not overlap, 112 pixels are half of 224, 64 are
 * all. */
static void test_image_sizes(void **state)
{
    static const struct {
        const char *text;
        double pixels;
    } cases[] = {{"Conv2d-1 [-1, 64, 112, 112] 9408\n", 224 * 224},
        {"Conv2d-1 [-1, 64, 64, 64] 1728\n", 64 * 64},
        {"Conv2d-1 [-1, 384, 14, 14] 295296\n", 224 * 224}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct built b;
        build(cases[i].text, (struct estimate_request){.batch = 1}, "sgd", &b);
        assert_true(b.tape.tensors[0].elements == 3 * cases[i].pixels);
        drop(&b);
    }
}

/* What is squeezed and excited is kept, to multiply its gradient by. */
static void test_scaled_block(void **state)
{
    struct built b;
    build(TREE
        "Net: 0-1  [-1, 8, 4, 4]  --\n├─Conv2d: 1-1  [-1, 8, 4, 4]  216\n├─Excite: 1-2  [-1, 8, 4, 4]  --\n"
        "│    ├─AdaptiveAvgPool2d: 2-1  [-1, 8, 1, 1]  --\n│    ├─Conv2d: 2-2  [-1, 8, 1, 1]  64\n"
        "│    ├─Sigmoid: 2-3  [-1, 8, 1, 1]  --\n====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    const struct op *scale = last_of(&b, LAYER_MERGE);
    assert_true(scale->keeps_inputs && b.tape.tensors[scale->output].elements == 8 * 4 * 4);
    assert_int_equal(scale->inputs[0], b.tape.ops[1].output);
    drop(&b);
}

/* A head without parameters, from the embedding's width to its rows, multiplies by the embedding.
 */
static void test_tied_head(void **state)
{
    static const char head[] = TREE
        "Net: 0-1  [-1, 4, 1000]  --\n├─Embedding: 1-1  [-1, 4, 64]  64,000\n"
        "├─LayerNorm: 1-2  [-1, 4, 64]  128\n├─Linear: 1-3  [-1, 4, 1000]  %s\n====\n";
    struct built tied, own;
    char text[512];
    snprintf(text, sizeof text, head, "--");
    build(text, (struct estimate_request){.batch = 1}, "sgd", &tied);
    assert_int_equal(last_of(&tied, LAYER_LINEAR)->tied_to, 0);
    assert_true(last_of(&tied, LAYER_LINEAR)->tied == 64000);
    snprintf(text, sizeof text, head, "64,000");
    build(text, (struct estimate_request){.batch = 1}, "sgd", &own);
    assert_int_equal(last_of(&own, LAYER_LINEAR)->tied_to, TAPE_NONE);
    /* One weight less, but two gradients of it and their sum at once: as much at the peak. */
    assert_true(tied.footprint.live > 4 * 4 * 64000 &&
                tied.footprint.live < own.footprint.live + 4 * 64000);
    drop(&tied);
    drop(&own);
}

/* Over images transformers train without dropout, over words with it; what the text says goes
 * before. */
static void test_dropout(void **state)
{
    struct built b;
    build(TREE
        "Net: 0-1  [-1, 4, 8]  --\n├─Conv2d: 1-1  [-1, 8, 2, 2]  6,144\n├─LayerNorm: 1-2  [-1, 4, 8]  16\n"
        "├─Linear: 1-3  [-1, 4, 8]  72\n├─Dropout: 1-4  [-1, 4, 8]  --\n====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_DROPOUT), 0);
    drop(&b);
    build(
        "Net(\n  (a): Linear(in_features=8, out_features=8, bias=True)\n  (b): Dropout(p=0.1, inplace=False)\n"
        "  (c): Linear(in_features=8, out_features=8, bias=True)\n)\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_DROPOUT), 1);
    drop(&b);
}

/* A block's own numbers, one per channel, scale its branch, whose result is kept; a concatenation
 * goes before a window of 2 x 2 that does not halve the map. */
static void test_branches(void **state)
{
    struct built b;
    build(TREE
        "Net: 0-1  [-1, 8, 4, 4]  --\n├─Conv2d: 1-1  [-1, 8, 4, 4]  216\n├─CNBlock: 1-2  [-1, 8, 4, 4]  8\n"
        "│    ├─Conv2d: 2-1  [-1, 8, 4, 4]  576\n====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    const struct op *scale = last_of(&b, LAYER_MERGE);
    assert_true(scale->keeps_inputs && scale->inputs[0] == b.tape.ops[2].output);
    drop(&b);
    build(
        "Conv2d-1 [-1, 32, 8, 8] 864\nConv2d-2 [-1, 64, 8, 8] 18432\nConv2d-3 [-1, 64, 8, 8] 36864\n"
        "Conv2d-4 [-1, 64, 8, 8] 8192\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 1);
    assert_true(last_of(&b, LAYER_CONV)->window == 1);
    drop(&b);
}

/* Under autocast: who raises logits to 32 bit holds them so twice more, before the loss and as its
 * gradient. */
static void test_raised_logits(void **state)
{
    static const char form[] = TREE
        "%s: 0-1  [-1, 64, 50000]  --\n├─Embedding: 1-1  [-1, 64, 64]  3,200,000\n"
        "├─Linear: 1-2  [-1, 64, 50000]  3,200,000\n====\n";
    static const char *const names[] = {"Net", "NetForCausalLM"};
    double live[2];
    for (int i = 0; i < 2; i++) {
        struct built b;
        char text[512];
        snprintf(text, sizeof text, form, names[i]);
        build(text, (struct estimate_request){.batch = 8, .precision = PRECISION_AMP}, "sgd", &b);
        live[i] = b.footprint.live;
        drop(&b);
    }
    assert_true(fabs(live[1] - live[0] - 8.0 * 64 * 50000 * 4) < MIB);
}

/* An activation written in Python keeps three maps of 12 MiB, each with its own segment, and
 * makes them by way of a fourth: with its input, its output and the batch these are seven. */
static void test_maps_of_an_activation_in_python(void **state)
{
    struct built b;
    build(TREE "Net  [-1, 64, 6144]  --\n├─LayerNorm: 1-1  [-1, 64, 6144]  12,288\n"
               "├─NewGELUActivation: 1-2  [-1, 64, 6144]  --\n====\n",
        (struct estimate_request){.batch = 8, .precision = PRECISION_FP32}, "sgd", &b);
    double map = 64 * 6144 * 4.0;
    assert_true(last_of(&b, LAYER_ACTIVATION)->kept_map == map);
    assert_true(last_of(&b, LAYER_ACTIVATION)->kept_bytes == 3 * map);
    assert_in_range((uintmax_t)(b.footprint.reserved / (8 * map)), 7, 8);
    drop(&b);
}

static double attention_keeps(const char *text, enum precision precision)
{
    struct built b;
    build(text,
        (struct estimate_request){.batch = 1, .sequence_length = 100, .precision = precision},
        "sgd", &b);
    double kept = last_of(&b, LAYER_ATTENTION)->kept_bytes;
    drop(&b);
    return kept;
}

/* Keys for several queries each: no fused kernel in 32 bit, so that a softmax of every pair is
 * kept. */
static void test_grouped_queries(void **state)
{
    static const char form[] =
        "Net(\n  (embedding): Embedding(100, 128)\n  (attention): SelfAttention(\n"
        "    (query): Linear(in_features=128, out_features=128, bias=True)\n"
        "    (key): Linear(in_features=128, out_features=%d, bias=True)\n"
        "    (value): Linear(in_features=128, out_features=%d, bias=True)\n  )\n)\n";
    char grouped[512], plain[512];
    const double heads = 128 / 64, pairs = heads * 100 * 100, sums = heads * 100 * 4;
    snprintf(grouped, sizeof grouped, form, 64, 64);
    snprintf(plain, sizeof plain, form, 128, 128);
    assert_true(attention_keeps(plain, PRECISION_FP32) == sums);
    assert_true(attention_keeps(grouped, PRECISION_AMP) == sums);
    assert_true(attention_keeps(grouped, PRECISION_FP32) == sums + 4 * pairs);
}

static const char encoder[] = "Encoder(\n"
                              "  (embedding): Embedding(100, 64)\n"
                              "  (attention): SelfAttention(\n"
                              "    (query): Linear(in_features=64, out_features=64, bias=True)\n"
                              "    (key): Linear(in_features=64, out_features=64, bias=True)\n"
                              "    (value): Linear(in_features=64, out_features=64, bias=True)\n"
                              "  )\n"
                              "  (output): Linear(in_features=64, out_features=64, bias=True)\n"
                              "  (fc1): Linear(in_features=64, out_features=256, bias=True)\n"
                              "  (fc2): Linear(in_features=256, out_features=64, bias=True)\n"
                              "  (act): GELU()\n"
                              ")\n";

/* A printed module has no shapes: they follow from the arguments and the length of the sequence. */
static void test_printed_transformer(void **state)
{
    struct built b;
    build(encoder, (struct estimate_request){.batch = 2, .sequence_length = 128}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_ATTENTION), 1);
    const struct op *attention = &b.tape.ops[4];
    assert_int_equal(attention->kind, LAYER_ATTENTION);
    assert_int_equal(b.tape.ops[1].inputs[0], b.tape.ops[3].inputs[0]);
    assert_true(b.tape.tensors[attention->output].elements == 128.0 * 64);
    assert_int_equal(b.tape.ops[7].kind, LAYER_ACTIVATION);
    assert_true(b.tape.tensors[b.tape.ops[7].output].last == 256);
    drop(&b);
}

static void test_sequence_has_to_be_said(void **state)
{
    struct fault fault = {""};
    struct estimate estimate;
    struct model *model;
    assert_int_equal(model_parse(encoder, strlen(encoder), &fault, &model), 0);
    struct estimate_request request = {.model = model, .batch = 2};
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), ESTIMATE_UNKNOWN);
    assert_non_null(strstr(estimate.note, "--seq"));
    model_destroy(model);
}

static void test_sequence_from_shapes(void **state)
{
    struct built shown, longer;
    const char *text = "Layer (type:depth-idx)  Output Shape  Param #\n"
                       "├─Embedding: 1-1   [2, 32, 64]   6,400\n"
                       "├─Linear: 1-2      [2, 32, 64]   4,160\n";
    build(text, (struct estimate_request){.batch = 2}, "sgd", &shown);
    build(text, (struct estimate_request){.batch = 2, .sequence_length = 64}, "sgd", &longer);
    assert_true(shown.tape.sequence == 32 && longer.tape.sequence == 64);
    assert_true(longer.footprint.saved == 2 * shown.footprint.saved);
    drop(&shown);
    drop(&longer);
}

static void test_autocast(void **state)
{
    struct built full, half;
    const char *text =
        "Conv2d-1 [-1, 64, 64, 64] 1728\nBatchNorm2d-2 [-1, 64, 64, 64] 128\nReLU-3 [-1, 64, 64, 64] 0\n"
        "Conv2d-4 [-1, 64, 64, 64] 36864\n";
    build(text, (struct estimate_request){.batch = 16, .precision = PRECISION_FP32}, "sgd", &full);
    build(text, (struct estimate_request){.batch = 16, .precision = PRECISION_AMP}, "sgd", &half);
    double ratio = half.footprint.saved /
                   full.footprint.saved; /* and the 16-bit copy of the images */
    assert_true(ratio >= 0.5 && ratio < 0.52);
    drop(&full);
    drop(&half);
}

/* What the allocator of an H200 was asked by _cudnn_rnn, but for 256 bytes of the reserve. */
static void test_recurrent_layers(void **state)
{
    static const struct {
        const char *type;
        double parameters, inputs, steps, width, batch;
        double reserve, scratch;
    } cases[] = {
        {"LSTM", 9633792, 300, 128, 1024, 128, 738197504,
            574031104},                                          /* two layers, both directions */
        {"LSTM", 6770400, 650, 35, 650, 64, 64064000, 87913984}, /* without dropout's bits */
        {"GRU", 5077800, 650, 70, 650, 32, 75712000, 72833728},
    };
    struct recurrent got;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct layer layer = {.type = {cases[i].type, strlen(cases[i].type)},
            .parameters = (int64_t)cases[i].parameters};
        struct extent output = {cases[i].steps * cases[i].width, cases[i].steps, cases[i].width};
        assert_true(recurrent_of(&layer, cases[i].inputs, output, 4, &got));
        assert_true(got.reserve * cases[i].batch == cases[i].reserve);
        assert_true(got.scratch + got.sample_scratch * cases[i].batch == cases[i].scratch);
        layer.parameters++;
        assert_false(recurrent_of(&layer, cases[i].inputs, output, 4, &got));
    }
}

/* Its reserve is kept until backward, its workspace comes and goes; under autocast all of it is in
 * 16 bit. */
static void test_recurrence_in_a_network(void **state)
{
    static const char text[] =
        "Embedding-1 [-1, 128, 300] 3000\nLSTM-2 [-1, 128, 1024] 9633792\nLinear-3 [-1, 128, 10] 10250\n";
    struct built full, half;
    build(text, (struct estimate_request){.batch = 128}, "sgd", &full);
    build(text, (struct estimate_request){.batch = 128, .precision = PRECISION_AMP}, "sgd", &half);
    assert_true(full.footprint.largest_workspace == 574031104);
    assert_true(full.footprint.active > 738197504.0 + 574031104);
    assert_true(
        half.footprint.largest_workspace == 574031104.0 / 2 + (32.0 * MIB + 256 + 8 * 128) / 2);
    drop(&full);
    drop(&half);
}

/* A network that enlarges its maps does so in 32 bit also under autocast; a gate on each channel is
 * no enlargement. */
static void test_enlarged_maps(void **state)
{
    static const struct {
        const char *text;
        int element_bytes;
    } cases[] = {
        {TREE "Segmentation: 0-1  [-1, 21, 64, 64]  --\n├─Conv2d: 1-1  [-1, 21, 8, 8]  588\n====\n",
            4},
        {TREE "Net: 0-1  [-1, 21, 64, 64]  --\n├─Conv2d: 1-1  [-1, 21, 64, 64]  588\n"
              "├─AdaptiveAvgPool2d: 1-2  [-1, 21, 1, 1]  --\n====\n",
            2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct built b;
        build(cases[i].text, (struct estimate_request){.batch = 1, .precision = PRECISION_AMP},
            "sgd", &b);
        const struct tensor *last = &b.tape.tensors[b.tape.n_tensors - 1];
        assert_true(last->elements == 21.0 * 64 * 64);
        assert_int_equal(last->element_bytes, cases[i].element_bytes);
        drop(&b);
    }
}

/* A parameter for each channel of each of three branches scales their results, which are kept;
 * those of tokens are something else. */
static void test_three_scaled_branches(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, 9, 32]  --\n├─Conv2d: 1-1  [-1, 32, 3, 3]  896\n"
        "├─LayerNorm: 1-2  [-1, 9, 32]  64\n├─Block (0): 1-3  [-1, 9, 32]  %d\n"
        "│    ├─LayerNorm: 2-1  [-1, 9, 32]  64\n│    ├─Linear: 2-2  [-1, 9, 32]  1,056\n====\n";
    const double map = 9 * 32 * 4;
    double saved[4];
    const int parameters[] = {0, 32, 96, 27};
    for (size_t i = 0; i < ARRAY_SIZE(parameters); i++) {
        char text[512];
        snprintf(text, sizeof text, form, parameters[i]);
        saved[i] = saved_by(text);
    }
    assert_true(saved[1] == saved[0] + map);
    assert_true(saved[2] == saved[0] + 3 * map);
    assert_true(saved[3] == saved[0]);
}

/* Attention that the text shows by dropout over scores of 4 heads x 8 x 8 channels, in a block of
 * any name: query, key and value are kept once as they came and once in another layout. */
static void test_scores_between_channels(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, 100, 32]  --\n├─Conv2d: 1-1  [-1, 32, 10, 10]  896\n"
        "├─LayerNorm: 1-2  [-1, 100, 32]  64\n├─%s (mix): 1-3  [-1, 100, 32]  4\n"
        "│    ├─Linear (qkv): 2-1  [-1, 100, 96]  3,168\n│    ├─Dropout: 2-2  [-1, 4, %d, %d]  --\n"
        "│    ├─Linear: 2-3  [-1, 100, 32]  1,056\n====\n";
    char channels[768], other[768];
    snprintf(channels, sizeof channels, form, "Mixer", 8, 8);
    snprintf(other, sizeof other, form, "Mixer", 8, 9);
    const double map = 100 * 32 * 4, scores = 4 * 8 * 8 * 4;
    double more = saved_by(channels) - saved_by(other);
    assert_true(more >= 7 * map + scores && more < 7.1 * map + scores); /* and the result */
}

/* Raw weights of five squares are those of attention with relative positions. */
static void test_relative_positions(void **state)
{
    static const char form[] = TREE
        "Net: 0-1  [-1, 16, 32]  --\n├─Embedding: 1-1  [-1, 16, 32]  3,200\n"
        "├─Attention: 1-2  [-1, 16, 32]  %d\n│    ├─LayerNorm: 2-1  [-1, 16, 32]  64\n====\n";
    char plain[512], relative[512];
    snprintf(plain, sizeof plain, form, 4 * 32 * 32);
    snprintf(relative, sizeof relative, form, 5 * 32 * 32 + 100);
    assert_true(saved_by(relative) - saved_by(plain) == 6 * 16 * 32 * 4);
}

/* A head of 8 channels at three scales: each map is for the loss, which keeps eight of them; where
 * each scale has a separate convolution, they are taken for branches. */
static void test_heads_of_a_detector(void **state)
{
    static const char form[] =
        "Conv2d-1 [-1, 16, 16, 16] 448\nConv2d-2 [-1, 16, 8, 8] 2320\nConv2d-3 [-1, 16, 4, 4] 2320\n"
        "Conv2d-4 [-1, 8, 16, 16] 1160\nConv2d-5 [-1, 8, 8, 8] %d\nConv2d-6 [-1, 8, 4, 4] %d\n"
        "Conv2d-7 [-1, 4, 16, 16] 580\n";
    char again[512], separate[512];
    snprintf(again, sizeof again, form, 0, 0);
    snprintf(separate, sizeof separate, form, 1160, 1160);
    const double head = 8.0 * (16 * 16 + 8 * 8 + 4 * 4);
    double more = saved_by(again) - saved_by(separate);
    assert_true(more == 8 * head * 4);
}

/* What a block that has ended made within is not what a later layer takes: here it takes two maps
 * side by side. */
static void test_blocks_hide_their_insides(void **state)
{
    struct built b;
    build(TREE
        "Net: 0-1  [-1, 8, 16, 16]  --\n├─Conv2d (first): 1-1  [-1, 8, 16, 16]  216\n"
        "├─Conv2d (down): 1-2  [-1, 16, 8, 8]  1,152\n├─Sequential (up): 1-3  [-1, 8, 16, 16]  --\n"
        "│    ├─Upsample (0): 2-1  [-1, 16, 16, 16]  --\n│    ├─Conv2d (1): 2-2  [-1, 8, 16, 16]  128\n"
        "├─Conv2d (merge): 1-4  [-1, 8, 16, 16]  1,152\n====\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    const struct op *side_by_side = last_of(&b, LAYER_MERGE), *conv = last_of(&b, LAYER_CONV);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 2); /* with the enlargement */
    assert_int_equal(conv->inputs[0], side_by_side->output);
    assert_int_equal(side_by_side->inputs[1], b.tape.ops[1].output);
    drop(&b);
}

/* 512 parameters are 16 channels from two times 16, and no 2 x 2 patches of the 8 of an earlier
 * map. */
static void test_patches_are_of_the_last_map(void **state)
{
    struct built b;
    build(
        "Conv2d-1 [-1, 8, 16, 16] 216\nConv2d-2 [-1, 16, 8, 8] 1152\nConv2d-3 [-1, 16, 8, 8] 2304\n"
        "Conv2d-4 [-1, 16, 8, 8] 512\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_int_equal(count_kind(&b.tape, LAYER_MERGE), 1);
    assert_true(last_of(&b, LAYER_CONV)->window == 1);
    drop(&b);
    build("Conv2d-1 [-1, 8, 16, 16] 216\nConv2d-2 [-1, 16, 8, 8] 512\n",
        (struct estimate_request){.batch = 1}, "sgd", &b);
    assert_true(last_of(&b, LAYER_CONV)->window == 4);
    drop(&b);
}

/* More samples never take less. */
static void test_grows_with_the_batch(void **state)
{
    const char *text =
        "Conv2d-1 [-1, 64, 32, 32] 1728\nBatchNorm2d-2 [-1, 64, 32, 32] 128\nReLU-3 [-1, 64, 32, 32] 0\n"
        "MaxPool2d-4 [-1, 64, 16, 16] 0\nLinear-5 [-1, 10] 163850\n";
    double last = 0;
    for (int64_t batch = 1; batch <= 4096; batch *= 2) {
        struct built b;
        build(text, (struct estimate_request){.batch = batch}, "adam", &b);
        assert_true(b.footprint.live > last && b.footprint.reserved >= b.footprint.live);
        last = b.footprint.live;
        drop(&b);
    }
}

static struct estimate estimate(const char *text, int64_t batch, int expected)
{
    struct fault fault = {""};
    struct estimate e;
    struct model *model;
    assert_int_equal(model_parse(text, strlen(text), &fault, &model), 0);
    struct estimate_request request = {.model = model, .batch = batch};
    assert_int_equal(estimate_run("graph", &request, &fault, &e), expected);
    assert_true(expected >= 0 || strlen(fault.text) > 0);
    model_destroy(model);
    return e;
}

static void test_answers(void **state)
{
    struct estimate e = estimate("Conv2d-1 [-1, 16, 8, 8] 448\nLinear-2 [-1, 10] 10250\n", 8, 0);
    assert_true(e.bytes.value > 100.0 * MIB && e.bytes.value < 1000.0 * MIB);
    assert_true(e.floor_bytes.valid && e.floor_bytes.value < e.bytes.value);
    e = estimate("Conv2d-1 [-1, 16, 8, 8] 448\nNovelty-2 [-1, 64, 80, 80] 10250\n", 8, 0);
    assert_non_null(strstr(e.note, "Novelty"));
    estimate("Linear-1 [-1, 9000000000000] 30\n", 1000000000, -34);
    e = estimate("Conv2d(3, 16, kernel_size=(3, 3), stride=(1, 1))\n", 8, ESTIMATE_UNKNOWN);
    assert_non_null(strstr(e.note, "no output shapes"));
}

/* Without --seq a network is taken at the longest sequence that it has positions for; RoBERTa's and
 * OPT's tables have two rows more. Where no table says it, the note asks for the length. */
static void test_the_longest_sequence(void **state)
{
#define OVER_POSITIONS(NAME, ROWS)                                                                 \
    "Net(\n  (words): Embedding(1000, 64)\n  (" NAME "): Embedding(" ROWS ", 64)\n"                \
    "  (fc): Linear(in_features=64, out_features=1000, bias=True)\n)\n"
    static const struct {
        const char *text, *note;
    } cases[] = {{OVER_POSITIONS("position_embeddings", "512"), "estimated for 512 tokens"},
        {OVER_POSITIONS("wpe", "1024"), "estimated for 1024 tokens"},
        {OVER_POSITIONS("embed_positions", "2050"), "estimated for 2048 tokens"},
        {OVER_POSITIONS("position_embeddings", "514"), "estimated for 512 tokens"},
        {OVER_POSITIONS("position_embeddings", "500"), "estimated for 500 tokens"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_non_null(strstr(estimate(cases[i].text, 8, 0).note, cases[i].note));
    static const char *const without[] = {OVER_POSITIONS("types", "512"),
        OVER_POSITIONS("position_embeddings", "2"),
        "Net(\n  (a_position): Embedding(32, 64)\n  (b_position): Embedding(64, 64)\n)\n"};
    assert_non_null(strstr(
        estimate(without[0], 8, ESTIMATE_UNKNOWN).note, "length of the sequence with --seq"));
    assert_non_null(strstr(estimate(without[1], 8, 0).note, "estimated for 2 tokens"));
    estimate(without[2], 8, ESTIMATE_UNKNOWN);
}

/* What is odd but readable is answered, with less trust and the reason. */
static void test_suspect_summaries(void **state)
{
    static const struct {
        const char *text, *words;
        int64_t batch;
        enum evidence evidence;
    } cases[] = {
        {"Linear-1 [-1, 10] 110\nTotal params: 110\n", "", 8, EVIDENCE_SUMMARY},
        {"Linear-1 [-1, 10] 110\nTotal params: 990\n", "contradicts itself", 8, EVIDENCE_DOUBTFUL},
        {"Linear-1 [-1, 10] 110\nTotal params: 110\nLinear-1 [-1, 20] 220\nTotal params: 220\n",
            "contradicts itself", 8, EVIDENCE_DOUBTFUL},
        {"Layer (type) Output Shape Param #\nLinear-1 [-1, 10] 110\n", "is cut off", 8,
            EVIDENCE_DOUBTFUL},
        {"Linear-1 [32, 10] 110\nLinear-2 [64, 10] 110\nLinear-3 [7, 10] 110\n",
            "contradicts itself", 8, EVIDENCE_DOUBTFUL},
        {"Net(\n  (a): Linear(in_features=4, out_features=4, bias=True)\n", "contradicts itself", 8,
            EVIDENCE_DOUBTFUL},
        {"Linear-1 [32, 10] 110\n", "printed for a batch of 32, scaled to 8", 8, EVIDENCE_SUMMARY},
        {"Model: \"net\"\n____\n Layer (type)    Output Shape    Param #\n====\n"
         " dense (Dense)    (None, 10)    110\n====\nTotal params: 110\n",
            "a summary of Keras", 8, EVIDENCE_DOUBTFUL},
        {"Linear-1 [-1, 10] 110\nNovelty-2 [-1, 640] 0\nNovelty-3 [-1, 640] 50\n", "Novelty", 8,
            EVIDENCE_DOUBTFUL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct estimate e = estimate(cases[i].text, cases[i].batch, 0);
        assert_int_equal(e.evidence, cases[i].evidence);
        if (!strstr(e.note, cases[i].words))
            fail_msg("\"%s\" does not tell \"%s\"", e.note, cases[i].words);
    }
}

/* A convolution of 128 taps over a sequence, as printed: doubtful in 32 bit. */
static void test_many_taps(void **state)
{
    static const char form[] = "Net(\n  (a): Conv1d(1, 8, kernel_size=(10,), stride=(5,))\n"
                               "  (b): Conv1d(8, 8, kernel_size=(%d,), stride=(1,), groups=4)\n)\n";
    static const struct {
        int taps;
        enum precision precision;
        enum evidence evidence;
    } cases[] = {{9, PRECISION_FP32, EVIDENCE_DECLARED}, {128, PRECISION_FP32, EVIDENCE_DOUBTFUL},
        {128, PRECISION_AMP, EVIDENCE_DECLARED}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[256];
        struct fault fault = {""};
        struct estimate e;
        struct input_shape input;
        struct estimate_request request = {
            .batch = 8, .precision = cases[i].precision, .optimizer = OPTIMIZER_SGD};
        snprintf(text, sizeof text, form, cases[i].taps);
        struct model *model;
        assert_int_equal(model_parse(text, strlen(text), &fault, &model), 0);
        assert_int_equal(input_shape_parse("1x4000", &fault, &input), 0);
        assert_int_equal(model_set_input(model, &input, &fault), 0);
        request.model = model;
        assert_int_equal(estimate_run("graph", &request, &fault, &e), 0);
        assert_int_equal(e.evidence, cases[i].evidence);
        assert_true((strstr(e.note, "128 taps") != NULL) == (e.evidence == EVIDENCE_DOUBTFUL));
        model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_the_longest_sequence),
        cmocka_unit_test(test_several_gpus),
        cmocka_unit_test(test_units_are_repeated_blocks),
        cmocka_unit_test(test_offload),
        cmocka_unit_test(test_tensor_parallelism),
        cmocka_unit_test(test_stages_of_a_pipeline),
        cmocka_unit_test(test_micro_batches_in_flight),
        cmocka_unit_test(test_saved_maps),
        cmocka_unit_test(test_hidden_concatenation),
        cmocka_unit_test(test_short_cut),
        cmocka_unit_test(test_grey_images),
        cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_printed_transformer),
        cmocka_unit_test(test_sequence_has_to_be_said),
        cmocka_unit_test(test_sequence_from_shapes),
        cmocka_unit_test(test_autocast),
        cmocka_unit_test(test_recurrent_layers),
        cmocka_unit_test(test_recurrence_in_a_network),
        cmocka_unit_test(test_enlarged_maps),
        cmocka_unit_test(test_three_scaled_branches),
        cmocka_unit_test(test_scores_between_channels),
        cmocka_unit_test(test_relative_positions),
        cmocka_unit_test(test_heads_of_a_detector),
        cmocka_unit_test(test_blocks_hide_their_insides),
        cmocka_unit_test(test_patches_are_of_the_last_map),
        cmocka_unit_test(test_grows_with_the_batch),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_suspect_summaries),
        cmocka_unit_test(test_many_taps),
        cmocka_unit_test(test_image_sizes),
        cmocka_unit_test(test_scaled_block),
        cmocka_unit_test(test_tied_head),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_maps_of_an_activation_in_python),
        cmocka_unit_test(test_grouped_queries),
        cmocka_unit_test(test_raised_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
