/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of a convolution, by which cuDNN chooses its kernels. */
#ifndef COLLOC_MODEL_CONV_SHAPE_H
#define COLLOC_MODEL_CONV_SHAPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/conv_question.h"
#include "model/linear_size.h"

/* What cuDNN chooses kernels of a convolution by. Maps have the batch in front, which depends on
 * the estimate: it is not set. */
struct conv_shape {
    struct linear_size batch;
    enum conv_type type;
    int64_t groups;
    bool channels_last, transposed;
    int32_t rank; /* of maps and weight; 0: the file lacks something */
    int32_t input[CONV_RANK_MAX], weight[CONV_RANK_MAX], output[CONV_RANK_MAX];
    int32_t stride[CONV_SPACE_MAX], padding[CONV_SPACE_MAX], dilation[CONV_SPACE_MAX];
};

/* Reads them from an export. Where one is missing or out of range, ret_shape->rank is 0: cuDNN
 * cannot be asked. */
void conv_shape_read(const json_t *row, struct conv_shape *ret_shape);

#endif
