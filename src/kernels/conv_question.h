/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pass of a convolution as cuDNN is asked about it: all that its choice of a kernel depends on,
 * beside the GPU and the library's version. It is a line of text for the program that asks
 * (ask_cudnn.c) and in the file of kept answers (kernel_file.h):
 *
 *     forward float32 nchw 1 0 64,3,224,224 64,3,7,7 64,64,112,112 2,2 3,3 1,1
 *
 * The pass, the type, the memory format, whether products may be of TF32, whether only
 * deterministic kernels serve; the sizes of the input, the weight and the output; strides, paddings
 * and dilations.
 */
#ifndef COLLOC_KERNELS_CONV_QUESTION_H
#define COLLOC_KERNELS_CONV_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONV_RANK_MAX = 5, CONV_SPACE_MAX = 3 }; /* a batch of volumes with channels */
enum { CONV_QUESTION_LINE_SIZE = 512 };         /* bytes, with the NUL: 27 numbers and five words */

enum conv_ask { CONV_ASK_FORWARD, CONV_ASK_INPUT, CONV_ASK_WEIGHT }; /* the last two: gradients */

enum conv_type { CONV_FLOAT32, CONV_FLOAT64, CONV_FLOAT16, CONV_BFLOAT16, CONV_TYPES };

/* Of equal numbers without holes: two questions are the same if their bytes are. Numbers beyond the
 * rank are 0. */
struct conv_question {
    int32_t pass, type; /* enum conv_ask, enum conv_type */
    int32_t channels_last, tf32, deterministic;
    int32_t rank; /* of the maps: 4 for images */
    int32_t input[CONV_RANK_MAX], weight[CONV_RANK_MAX], output[CONV_RANK_MAX];
    int32_t stride[CONV_SPACE_MAX], padding[CONV_SPACE_MAX], dilation[CONV_SPACE_MAX];
};

/* Returns the type of PyTorch's name ("bfloat16"), or CONV_TYPES for another one. */
enum conv_type conv_type_of(const char *name);

/* Writes the line, without a line end. */
void conv_question_write(const struct conv_question *question, char line[CONV_QUESTION_LINE_SIZE]);

/* Parses a line of `size` bytes. Returns false for any other text. */
bool conv_question_read(const char *line, size_t size, struct conv_question *ret_question);

/* Are all its numbers those of a question? For one that another process made. */
bool conv_question_is_sane(const struct conv_question *question);

/* Are both the same question? */
bool conv_question_equal(const struct conv_question *a, const struct conv_question *b);

#endif
