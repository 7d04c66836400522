/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch asks cuDNN about a convolution of images (aten/src/ATen/native/Convolution.cpp,
 * ConvShared.cpp). So
 *
 *   - sequences are images of one row: 64,3,1000 becomes 64,3,1,1000, with a stride of 1, no
 *     padding and no dilation along that row;
 *   - a transposed convolution is the gradient of another one. Its forward pass is that one's
 *     gradient of the input, its gradient of the input that one's forward pass, and its input and
 *     output are that one's output and input;
 *   - depthwise convolutions run by PyTorch's own kernels, which take no workspace, where the
 *     channels are not last.
 */
#include "model/export_question.h"

#include <string.h>

#include "base/array.h"

enum { RANK_OF_IMAGES = 4 };

static bool is_depthwise(const struct conv_shape *shape)
{
    return !shape->transposed && shape->groups > 1 && shape->groups == shape->input[1] &&
           shape->weight[0] % shape->input[1] == 0;
}

/* A list of a sequence becomes that of an image with one row: `front` is put at `at`. */
static void insert_row(int32_t *numbers, int at, int32_t front)
{
    numbers[at + 1] = numbers[at];
    numbers[at] = front;
}

static void widen_sequence(struct conv_question *question)
{
    int32_t *const maps[] = {question->input, question->weight, question->output};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
        insert_row(maps[i], 2, 1);
    insert_row(question->stride, 0, 1);
    insert_row(question->padding, 0, 0);
    insert_row(question->dilation, 0, 1);
    question->rank = RANK_OF_IMAGES;
}

static enum conv_ask ask_of(enum export_pass pass, bool transposed)
{
    static const enum conv_ask plain[] = {[EXPORT_FORWARD] = CONV_ASK_FORWARD,
        [EXPORT_INPUT_GRADIENT] = CONV_ASK_INPUT,
        [EXPORT_WEIGHT_GRADIENT] = CONV_ASK_WEIGHT};
    static const enum conv_ask turned[] = {[EXPORT_FORWARD] = CONV_ASK_INPUT,
        [EXPORT_INPUT_GRADIENT] = CONV_ASK_FORWARD,
        [EXPORT_WEIGHT_GRADIENT] = CONV_ASK_WEIGHT};
    return (transposed ? turned : plain)[pass];
}

enum kernel_of export_question(const struct export *export, const struct export_conv *conv,
    int64_t batch, struct conv_question *ret_question)
{
    const struct conv_shape *shape = &export->shapes[conv->shape];
    double samples = linear_size_at(shape->batch, (double)batch);
    if (shape->rank == 0 || !export->cudnn.is_known || samples < 1 || samples > INT32_MAX)
        return KERNEL_NOT_KNOWN;
    if (is_depthwise(shape) && !shape->channels_last)
        return KERNEL_OF_PYTORCH;
    struct conv_question question = {.pass = (int32_t)ask_of(conv->pass, shape->transposed),
        .type = (int32_t)shape->type,
        .channels_last = shape->channels_last,
        .tf32 = export->cudnn.tf32,
        .deterministic = export->cudnn.deterministic,
        .rank = shape->rank};
    memcpy(question.input, shape->transposed ? shape->output : shape->input, sizeof question.input);
    memcpy(
        question.output, shape->transposed ? shape->input : shape->output, sizeof question.output);
    memcpy(question.weight, shape->weight, sizeof question.weight);
    memcpy(question.stride, shape->stride, sizeof question.stride);
    memcpy(question.padding, shape->padding, sizeof question.padding);
    memcpy(question.dilation, shape->dilation, sizeof question.dilation);
    question.input[0] = question.output[0] = (int32_t)samples;
    if (question.rank < RANK_OF_IMAGES)
        widen_sequence(&question);
    *ret_question = question;
    return KERNEL_OF_CUDNN;
}

size_t export_questions_missing(const struct export *export, int64_t batch,
    const struct kernel_answers *answers, size_t most, struct conv_question *ret_questions)
{
    struct kernel_answers collected = {0};
    size_t n = 0;
    for (size_t i = 0; i < export->n_convs && n < most; i++) {
        struct conv_question question;
        int64_t bytes;
        if (export_question(export, &export->convs[i], batch, &question) != KERNEL_OF_CUDNN ||
            kernel_answers_find(answers, &question, &bytes) ||
            kernel_answers_find(&collected, &question, &bytes))
            continue;
        if (kernel_answers_put(&collected, &question, 0) < 0)
            break;
        ret_questions[n++] = question;
    }
    kernel_answers_clear(&collected);
    return n;
}
