/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of printed modules from the shape of one sample. */
#include "unit.h"

#include <errno.h>

#include "base/array.h"
#include "model/input_shape.h"

#define HEAD                                                                                       \
    "Net(\n"                                                                                       \
    "  (conv1): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3), bias=False)\n"    \
    "  (relu): ReLU(inplace=True)\n"                                                               \
    "  (maxpool): MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)\n"

/* The model of a text, for samples of this shape. */
static struct model *shaped(const char *text, const char *input)
{
    struct model *model;
    struct input_shape shape;
    struct fault fault = {""};
    assert_int_equal(model_parse(text, strlen(text), &fault, &model), 0);
    assert_int_equal(input_shape_parse(input, &fault, &shape), 0);
    assert_int_equal(model_set_input(model, &shape, &fault), 0);
    return model;
}

static void assert_shape(const struct model *model, const char *name, const char *wanted)
{
    const struct layer *layer = layer_called(model, name);
    char text[128] = "";
    for (int i = 0; i < layer->rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? "x" : "",
            (long long)layer->shape[i]);
    assert_string_equal(text, wanted);
}

static void test_windows_and_a_shortcut(void **state)
{
    struct model *model = shaped(HEAD
        "  (block): Block(\n"
        "    (conv2): Conv2d(64, 128, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))\n"
        "    (bn2): BatchNorm2d(128, eps=1e-05, affine=True)\n"
        "    (downsample): Sequential(\n"
        "      (short): Conv2d(64, 128, kernel_size=(1, 1), stride=(2, 2), bias=False)\n"
        "    )\n"
        "  )\n"
        "  (avgpool): AdaptiveAvgPool2d(output_size=(1, 1))\n"
        "  (fc): Linear(in_features=128, out_features=10, bias=True)\n)\n",
        "3x224x224");
    assert_shape(model, "conv1", "64x112x112");
    assert_shape(model, "maxpool", "64x56x56");
    assert_shape(model, "bn2", "128x28x28");
    assert_shape(model, "short", "128x28x28"); /* it reads what the block reads */
    assert_shape(model, "block", "128x28x28");
    assert_shape(model, "avgpool", "128x1x1");
    assert_shape(model, "fc", "10");
    assert_int_equal(model->n_leaves_unshaped, 0);
    assert_int_equal(model->n_warnings, 0);
    assert_false(model->is_suspect);
    model_destroy(model);
}

static void test_a_gate_scales_its_map(void **state)
{
    struct model *model = shaped(HEAD
        "  (se): SqueezeExcite(\n"
        "    (conv_reduce): Conv2d(64, 4, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (act1): ReLU(inplace=True)\n"
        "    (conv_expand): Conv2d(4, 64, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (gate): Sigmoid()\n  )\n"
        "  (next): Conv2d(64, 8, kernel_size=(2, 2), stride=(2, 2))\n"
        "  (up): ConvTranspose2d(8, 4, kernel_size=(2, 2), stride=(2, 2))\n)\n",
        "3x64x64");
    assert_shape(model, "conv_reduce", "4x1x1");
    assert_shape(model, "gate", "64x1x1");
    assert_shape(model, "se", "64x16x16");
    assert_shape(model, "next", "8x8x8");
    assert_shape(model, "up", "4x16x16");
    model_destroy(model);
}

/* Branches that are put together: the text does not show it, so the estimate is doubtful. */
static void test_branches_are_joined(void **state)
{
    struct model *model = shaped(HEAD
        "  (fire): Fire(\n"
        "    (left): Conv2d(64, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (right): Conv2d(64, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
        "  )\n"
        "  (mixed): Conv2d(48, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "right", "16x16x16");
    assert_shape(model, "fire", "48x16x16");
    assert_shape(model, "mixed", "8x16x16");
    assert_true(model->is_suspect);
    assert_warning(model, "line 9: what this layer reads is a guess");
    model_destroy(model);
}

/* Modules that are branches by their names read what the module around them reads, and the next
 * layer reads all of them: no guess. */
static void test_named_branches(void **state)
{
    struct model *model = shaped(HEAD
        "  (mixed): Mixed(\n"
        "    (branch1x1): Conv2d(64, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch3x3_1): Conv2d(64, 64, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch3x3_2a): Conv2d(64, 8, kernel_size=(1, 3), stride=(1, 1), padding=(0, 1))\n"
        "    (branch3x3_2b): Conv2d(64, 8, kernel_size=(3, 1), stride=(1, 1), padding=(1, 0))\n"
        "    (branch_pool): Sequential(\n"
        "      (pool): MaxPool2d(kernel_size=3, stride=1, padding=1)\n"
        "      (last): Conv2d(64, 16, kernel_size=(1, 1), stride=(1, 1))\n"
        "    )\n"
        "  )\n"
        "  (next): Conv2d(64, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "branch3x3_2b", "8x16x16");
    assert_shape(model, "pool", "64x16x16"); /* of the input, not of another branch */
    assert_shape(model, "mixed", "64x16x16");
    assert_shape(model, "next", "8x16x16");
    assert_false(model->is_suspect);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

/* The layers of a branch are parts of it by their names. */
static void test_parts_of_branches(void **state)
{
    struct model *model = shaped(HEAD
        "  (mixed): Mixed(\n"
        "    (branch1_conv): Conv2d(64, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch1_bn): BatchNorm2d(32, eps=1e-05, affine=True)\n"
        "    (branch1_relu): ReLU()\n"
        "    (branch2_0): Conv2d(64, 24, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch2_1a): Conv2d(24, 8, kernel_size=(1, 3), stride=(1, 1), padding=(0, 1))\n"
        "    (branch2_1b): Conv2d(24, 8, kernel_size=(3, 1), stride=(1, 1), padding=(1, 0))\n"
        "    (branch3): Conv2d(64, 16, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch3_norm): BatchNorm2d(16, eps=1e-05, affine=True)\n"
        "  )\n"
        "  (next): Conv2d(64, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "branch1_bn", "32x16x16");
    assert_shape(model, "branch1_relu", "32x16x16");
    assert_shape(model, "branch2_1b", "8x16x16");
    assert_shape(model, "branch3_norm", "16x16x16");
    assert_shape(model, "mixed", "64x16x16");
    assert_false(model->is_suspect);
    model_destroy(model);
}

/* Branches of which each has a number, and none has parts. */
static void test_numbered_branches(void **state)
{
    struct model *model = shaped(HEAD
        "  (mixed): Mixed(\n"
        "    (branch_0): Conv2d(64, 24, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch_1): Conv2d(64, 16, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch_2): Sequential(\n"
        "      (pool): MaxPool2d(kernel_size=3, stride=1, padding=1)\n"
        "      (last): Conv2d(64, 8, kernel_size=(1, 1), stride=(1, 1))\n"
        "    )\n"
        "  )\n"
        "  (next): Conv2d(48, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "pool", "64x16x16");
    assert_shape(model, "mixed", "48x16x16");
    assert_false(model->is_suspect);
    model_destroy(model);
}

/* Branches are added where what follows reads as many channels as one of them has. */
static void test_added_branches(void **state)
{
    static const char form[] = HEAD
        "  (block): Block(\n"
        "    (branch1_conv): Conv2d(64, 96, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch1_norm): BatchNorm2d(96, eps=1e-05, affine=True)\n"
        "    (branch2): Conv2d(64, 96, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
        "    (activation): ReLU()\n"
        "  )\n"
        "  (relu): ReLU()\n"
        "  (next): Conv2d(%d, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n";
    for (int n = 1; n <= 2; n++) {
        char text[1024], wanted[16];
        snprintf(text, sizeof text, form, n * 96);
        snprintf(wanted, sizeof wanted, "%dx16x16", n * 96);
        struct model *model = shaped(text, "3x64x64");
        assert_shape(model, "branch2", "96x16x16");
        assert_shape(model, "block", wanted);
        assert_false(model->is_suspect);
        model_destroy(model);
    }
}

/* Branches with a stride of 2, beside which a function pools the input of 64 channels. */
static void test_branches_beside_a_pool(void **state)
{
    static const char form[] = HEAD
        "  (mixed): Mixed(\n"
        "    (branch_a): Conv2d(64, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))\n"
        "    (branch_b): Conv2d(64, 16, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))\n"
        "  )\n"
        "  (next): Conv2d(%d, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n";
    static const struct {
        int channels;
        bool is_guess;
    } cases[] = {{48, false}, {48 + 64, false}, {100, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, form, cases[i].channels);
        struct model *model = shaped(text, "3x64x64");
        assert_shape(model, "next", "8x8x8");
        assert_int_equal(model->is_suspect, cases[i].is_guess);
        model_destroy(model);
    }
}

/* The same after a classifier that is listed before the module: the module does not read that. */
static void test_branches_after_a_classifier(void **state)
{
    struct model *model = shaped(HEAD
        "  (aux): Linear(in_features=64, out_features=10, bias=True)\n"
        "  (mixed): Mixed(\n"
        "    (branch_a): Conv2d(64, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))\n"
        "    (branch_b): Conv2d(64, 16, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))\n"
        "  )\n"
        "  (next): Conv2d(112, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "branch_b", "16x8x8");
    assert_shape(model, "next", "8x8x8");
    assert_false(model->is_suspect);
    model_destroy(model);
}

/* An empty branch passes the half that the other one does not read. */
static void test_divided_channels(void **state)
{
    struct model *model = shaped(HEAD
        "  (unit): Unit(\n"
        "    (branch1): Sequential()\n"
        "    (branch2): Sequential(\n"
        "      (half): Conv2d(32, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
        "    )\n"
        "  )\n"
        "  (next): Conv2d(64, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "half", "32x16x16");
    assert_shape(model, "unit", "64x16x16");
    assert_false(model->is_suspect);
    model_destroy(model);
}

/* A unit of two equal branches before one that divides: the second one's first convolution reads
 * half of them, and they are not added. */
static void test_joined_before_divided_channels(void **state)
{
    struct model *model = shaped(HEAD
        "  (one): Unit(\n"
        "    (branch1): Conv2d(64, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch2): Conv2d(64, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "  )\n"
        "  (two): Unit(\n"
        "    (branch1): Sequential()\n"
        "    (branch2): Conv2d(32, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "  )\n"
        "  (next): Conv2d(64, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "one", "64x16x16");
    assert_shape(model, "two", "64x16x16");
    assert_false(model->is_suspect);
    model_destroy(model);
}

/* The next unit has one branch only, and a function passes the other channels. */
static void test_joined_before_a_lone_branch(void **state)
{
    struct model *model = shaped(HEAD
        "  (one): Unit(\n"
        "    (branch1): Conv2d(64, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (branch2): Conv2d(64, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "  )\n"
        "  (two): Unit(\n"
        "    (branch2): Conv2d(32, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "  )\n)\n",
        "3x64x64");
    assert_shape(model, "one", "64x16x16");
    assert_false(model->is_suspect);
    model_destroy(model);
}

/* Branches without layers pass what the module reads. */
static void test_empty_branches(void **state)
{
    struct model *model = shaped(HEAD
        "  (unit): Unit(\n"
        "    (branch1): Sequential()\n"
        "    (norm): LayerNorm((64,), eps=1e-05)\n"
        "    (branch2): Sequential()\n"
        "  )\n"
        "  (next): Conv2d(64, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "norm", "16x16x64");
    assert_shape(model, "next", "8x16x16");
    model_destroy(model);
}

/* A convolution after a gate reads an earlier map, at that map's places. */
static void test_map_before_a_gate(void **state)
{
    struct model *model = shaped(HEAD
        "  (down): Conv2d(64, 32, kernel_size=(2, 2), stride=(2, 2))\n"
        "  (scale): AdaptiveAvgPool2d(output_size=1)\n"
        "  (low): Conv2d(64, 5, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "low", "5x16x16");
    model_destroy(model);
}

static void test_tokens(void **state)
{
    struct model *model = shaped(
        "Net(\n"
        "  (patch): Conv2d(3, 96, kernel_size=(4, 4), stride=(4, 4))\n"
        "  (norm): LayerNorm((96,), eps=1e-05, elementwise_affine=True)\n"
        "  (attn): WindowAttention(\n"
        "    (qkv): Linear(in_features=96, out_features=288, bias=True)\n"
        "    (proj): Linear(in_features=96, out_features=96, bias=True)\n"
        "    (cpb): Linear(in_features=2, out_features=512, bias=True)\n"
        "  )\n"
        "  (merge): PatchMerging(\n"
        "    (reduction): Linear(in_features=384, out_features=192, bias=False)\n"
        "    (inner): LayerNorm((384,), eps=1e-05, elementwise_affine=True)\n"
        "  )\n"
        "  (last): LayerNorm((192,), eps=1e-05, elementwise_affine=True)\n"
        ")\n",
        "3x32x32");
    assert_shape(model, "norm", "8x8x96");
    assert_shape(model, "qkv", "8x8x288");
    assert_shape(model, "cpb", ""); /* of positions */
    assert_shape(model, "attn", "8x8x96");
    assert_shape(model, "reduction", "16x192");
    assert_shape(model, "inner", "16x384");
    assert_shape(model, "last", "16x192");
    model_destroy(model);
}

/* MaxViT's MBConv: the shortcut pools, and is printed before the layers that run beside it. */
static void test_a_pooled_shortcut_first(void **state)
{
    static const char form[] =
        "Net(\n"
        "  (block): Block(\n"
        "    (proj): Sequential(\n"
        "      (0): AvgPool2d(kernel_size=3, stride=2, padding=1)\n"
        "      (1): Conv2d(8, 8, kernel_size=(1, 1), stride=(1, 1))\n"
        "    )\n"
        "    (stochastic_depth): Identity()\n"
        "    (layers): Sequential(\n"
        "      (first): Conv2d(8, 32, kernel_size=(1, 1), stride=(1, 1))\n"
        "      (second): Conv2d(32, 8, kernel_size=(3, 3), stride=(%d, %d), padding=(1, 1))\n"
        "    )\n"
        "  )\n"
        "  (after): Conv2d(8, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n";
    char text[1024];
    snprintf(text, sizeof text, form, 2, 2);
    struct model *model = shaped(text, "8x64x64");
    assert_shape(model, "first", "32x64x64");
    assert_shape(model, "second", "8x32x32");
    assert_shape(model, "after", "8x32x32");
    assert_false(model->is_suspect);
    model_destroy(model);

    snprintf(text, sizeof text, form, 1, 1); /* as large as the pooled map: one after the other */
    model = shaped(text, "8x64x64");
    assert_shape(model, "first", "32x32x32");
    model_destroy(model);
}

/* Windows of attention are copies of the map, and leave its size; no layer of unknown type. */
static void test_windows_of_a_map(void **state)
{
    struct model *model = shaped("Net(\n"
                                 "  (embed): Conv2d(3, 8, kernel_size=(4, 4), stride=(4, 4))\n"
                                 "  (partition): WindowPartition()\n"
                                 "  (swap): SwapAxes()\n"
                                 "  (norm): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                                 "  (up): Linear(in_features=8, out_features=32, bias=True)\n"
                                 "  (back): WindowDepartition()\n"
                                 "  (after): Conv2d(32, 8, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "up", "16x16x32");
    assert_shape(model, "after", "8x16x16");
    assert_int_equal(layer_called(model, "partition")->kind, LAYER_MERGE);
    assert_int_equal(layer_called(model, "back")->kind, LAYER_MERGE);
    assert_int_equal(layer_called(model, "swap")->kind, LAYER_RESHAPE);
    assert_int_equal(model->n_warnings, 0);
    model_destroy(model);
}

#define RESIZE                                                                                     \
    "  (transform): Transform(\n"                                                                  \
    "      Normalize(mean=[0.5, 0.5, 0.5], std=[0.2, 0.2, 0.2])\n"                                 \
    "      Resize(min_size=(%s,), max_size=%s, mode='bilinear')\n"                                 \
    "  )\n"
#define NETWORK "  (conv): Conv2d(3, 8, kernel_size=(2, 2), stride=(2, 2))\n"

/* A detector enlarges its images, wherever it prints that. */
static void test_a_resized_input(void **state)
{
    static const struct {
        const char *form, *shorter, *longest, *input, *wanted;
    } cases[] = {
        {"Net(\n" RESIZE NETWORK ")\n", "800", "1333", "3x640x640", "8x400x400"},
        {"Net(\n" NETWORK RESIZE ")\n", "800", "1333", "3x640x640", "8x400x400"},
        {"Net(\n" RESIZE NETWORK ")\n", "640, 800", "1333", "3x300x400", "8x400x544"},
        {"Net(\n" RESIZE NETWORK ")\n", "800", "1333", "3x400x1600", "8x176x672"},
        {"Net(\n" RESIZE NETWORK ")\n", "x", "1333", "3x64x64", "8x32x32"},
        {"Net(\n" RESIZE NETWORK ")\n", "800", "99999999999999999999", "3x64x64", "8x32x32"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[1024];
        snprintf(text, sizeof text, cases[i].form, cases[i].shorter, cases[i].longest);
        struct model *model = shaped(text, cases[i].input);
        assert_shape(model, "conv", cases[i].wanted);
        model_destroy(model);
    }
}

/* A feature pyramid: each member of the first list reads a stage, each of the second what the first
 * made of it, and the head reads all of them, which is a guess. */
static void test_lists_of_maps(void **state)
{
    struct model *model = shaped(
        "Net(\n"
        "  (stage1): Sequential(\n"
        "    (a): Conv2d(3, 8, kernel_size=(2, 2), stride=(2, 2))\n"
        "  )\n"
        "  (stage2): Sequential(\n"
        "    (b): Conv2d(8, 16, kernel_size=(2, 2), stride=(2, 2))\n"
        "    (narrow): Conv2d(16, 8, kernel_size=(1, 1), stride=(1, 1))\n"
        "    (wide): Conv2d(8, 16, kernel_size=(1, 1), stride=(1, 1))\n"
        "  )\n"
        "  (pyramid): Pyramid(\n"
        "    (inner): ModuleList(\n"
        "      (inner1): Conv2d(8, 4, kernel_size=(1, 1), stride=(1, 1))\n"
        "      (inner2): Conv2d(16, 4, kernel_size=(1, 1), stride=(1, 1))\n"
        "    )\n"
        "    (outer): ModuleList(\n"
        "      (outer1): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
        "      (outer2): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
        "    )\n"
        "    (extra): MaxPool2d(kernel_size=2, stride=2)\n"
        "  )\n"
        "  (head): Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1))\n)\n",
        "3x64x64");
    assert_shape(model, "inner1", "4x32x32"); /* of stage1, not of the narrow layer in stage2 */
    assert_shape(model, "inner2", "4x16x16");
    assert_shape(model, "outer1", "4x32x32");
    assert_shape(model, "outer2", "4x16x16");
    assert_shape(model, "head", "4x32x32");
    assert_true(model->is_suspect);
    model_destroy(model);
}

static void test_what_does_not_fit_has_no_shape(void **state)
{
    struct model *model = shaped(HEAD ")\n", "3x1x1"); /* smaller than its window */
    assert_shape(model, "conv1", "64x1x1");
    model_destroy(model);
    model = shaped("Net(\n  (conv): Conv2d(3, 9, kernel_size=(9, 9), stride=(0, 0))\n)\n", "3x4x4");
    assert_shape(model, "conv", "");
    model_destroy(model);
    model = shaped("Net(\n  (conv): Conv2d(3, 9, kernel_size=(9, 9), stride=(1, 1))\n)\n", "3x4x4");
    assert_shape(model, "conv", "");
    model_destroy(model);
    model = shaped("Net(\n  (up): Upsample(scale_factor=1048576.0)\n"
                   "  (again): Upsample(scale_factor=1048576.0)\n)\n",
        "3x4x4");
    assert_shape(model, "again", "");
    model_destroy(model);
    model = shaped("Net(\n  (pool): AdaptiveAvgPool2d(output_size=(0, 0))\n)\n", "3x4x4");
    assert_shape(model, "pool", ""); /* no places */
    model_destroy(model);
}

/* A stride of 0 in the middle dimension: nothing is divided by it. */
static void test_a_window_that_does_not_move(void **state)
{
    struct model *model = shaped(
        "Net(\n  (conv): Conv3d(3, 9, kernel_size=(1, 1, 1), stride=(1, 0, 1))\n)\n", "3x4x4x4");
    assert_shape(model, "conv", "");
    model_destroy(model);
}

/* More channels than a map can have are in no map, and in no sum. */
static void test_too_many_channels(void **state)
{
    struct model *model = shaped(
        "Net(\n"
        "  (block): Block(\n    (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))\n  )\n"
        "  (inner): Block(\n    (next): Conv2d(4000000000000000000, 1, kernel_size=(1, 1), "
        "stride=(1, 1), bias=False)\n  )\n)\n",
        "3x224x224");
    assert_shape(model, "block", "8x224x224");
    assert_shape(model, "next", "1x224x224");
    model_destroy(model);
    model = shaped("Net(\n  (norm): LayerNorm((4000000000000000000,), eps=1e-06)\n)\n", "3x4x4");
    assert_shape(model, "norm", "");
    model_destroy(model);
}

static void test_a_summary_with_shapes_keeps_them(void **state)
{
    struct model *model = shaped("Linear-1 [-1, 10] 110\n", "3x224x224");
    assert_shape(model, "", "10");
    assert_warning(model, "the input's shape is not used: the summary has shapes");
    model_destroy(model);
    model = shaped("Net(\n  (words): Embedding(100, 16)\n)\n", "3x224x224");
    assert_warning(model, "the input's shape is not used: the model reads tokens");
    model_destroy(model);
}

static void test_mistakes(void **state)
{
    static const char *const wrong[] = {
        "", "3", "x", "3x", "3xx4", "0x4x4", "3x-1x4", "3x4x4x4x4", "ax4x4", "3x9999999999x4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct fault fault = {""};
        struct input_shape shape;
        assert_int_equal(input_shape_parse(wrong[i], &fault, &shape), -EINVAL);
        assert_non_null(strstr(fault.text, "such as 3x224x224"));
    }
    struct fault fault = {""};
    struct input_shape shape;
    assert_int_equal(input_shape_parse("1048576x1048576x1048576x1048576", &fault, &shape), -EINVAL);
    assert_non_null(strstr(fault.text, "one sample has at most 10^12 numbers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_and_a_shortcut),
        cmocka_unit_test(test_a_gate_scales_its_map),
        cmocka_unit_test(test_branches_are_joined),
        cmocka_unit_test(test_named_branches),
        cmocka_unit_test(test_parts_of_branches),
        cmocka_unit_test(test_numbered_branches),
        cmocka_unit_test(test_added_branches),
        cmocka_unit_test(test_branches_beside_a_pool),
        cmocka_unit_test(test_branches_after_a_classifier),
        cmocka_unit_test(test_divided_channels),
        cmocka_unit_test(test_joined_before_divided_channels),
        cmocka_unit_test(test_joined_before_a_lone_branch),
        cmocka_unit_test(test_empty_branches),
        cmocka_unit_test(test_map_before_a_gate),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_a_pooled_shortcut_first),
        cmocka_unit_test(test_windows_of_a_map),
        cmocka_unit_test(test_a_resized_input),
        cmocka_unit_test(test_lists_of_maps),
        cmocka_unit_test(test_what_does_not_fit_has_no_shape),
        cmocka_unit_test(test_a_window_that_does_not_move),
        cmocka_unit_test(test_too_many_channels),
        cmocka_unit_test(test_a_summary_with_shapes_keeps_them),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
