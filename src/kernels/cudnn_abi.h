/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What colloc uses of cuDNN's backend interface, without NVIDIA's headers: the values of
 * cudnn_graph.h, which are the same in cuDNN 8 and 9.
 */
#ifndef COLLOC_KERNELS_CUDNN_ABI_H
#define COLLOC_KERNELS_CUDNN_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef void *cudnn_abi_descriptor;

enum cudnn_abi_kind {
    CUDNN_ABI_CONVOLUTION = 1,
    CUDNN_ABI_ENGINE = 2,
    CUDNN_ABI_CONFIG = 3,
    CUDNN_ABI_HEURISTICS = 4,
    CUDNN_ABI_PLAN = 5,
    CUDNN_ABI_FORWARD = 10,
    CUDNN_ABI_BACKWARD_FILTER = 11,
    CUDNN_ABI_BACKWARD_DATA = 12,
    CUDNN_ABI_GRAPH = 15,
    CUDNN_ABI_TENSOR = 17,
    CUDNN_ABI_DEVICE = 38,
};

enum cudnn_abi_type {
    CUDNN_ABI_TYPE_HANDLE = 0,
    CUDNN_ABI_TYPE_DATA_TYPE = 1,
    CUDNN_ABI_TYPE_INT64 = 3,
    CUDNN_ABI_TYPE_FLOAT = 4,
    CUDNN_ABI_TYPE_CONVOLUTION_MODE = 7,
    CUDNN_ABI_TYPE_HEURISTICS_MODE = 8,
    CUDNN_ABI_TYPE_NUMERICAL_NOTE = 11,
    CUDNN_ABI_TYPE_DESCRIPTOR = 15,
    CUDNN_ABI_TYPE_INT32 = 23,
    CUDNN_ABI_TYPE_CHAR = 24,
};

enum cudnn_abi_attribute {
    CUDNN_ABI_CONVOLUTION_COMPUTE = 100,
    CUDNN_ABI_CONVOLUTION_MODE = 101,
    CUDNN_ABI_CONVOLUTION_DILATIONS = 102,
    CUDNN_ABI_CONVOLUTION_STRIDES = 103,
    CUDNN_ABI_CONVOLUTION_POST_PADDINGS = 104,
    CUDNN_ABI_CONVOLUTION_PRE_PADDINGS = 105,
    CUDNN_ABI_CONVOLUTION_DIMENSIONS = 106,
    CUDNN_ABI_HEURISTICS_MODE = 200,
    CUDNN_ABI_HEURISTICS_GRAPH = 201,
    CUDNN_ABI_HEURISTICS_RESULTS = 202,
    CUDNN_ABI_HEURISTICS_DEVICE = 204,
    CUDNN_ABI_CONFIG_ENGINE = 300,
    CUDNN_ABI_PLAN_HANDLE = 400,
    CUDNN_ABI_PLAN_CONFIG = 401,
    CUDNN_ABI_PLAN_WORKSPACE = 402,
    CUDNN_ABI_PLAN_DEVICE = 407,
    CUDNN_ABI_FORWARD_ALPHA = 700, /* beta, convolution, W, X and Y follow */
    CUDNN_ABI_DATA_ALPHA = 706,    /* beta, convolution, W, dX and dY follow */
    CUDNN_ABI_FILTER_ALPHA = 712,  /* beta, convolution, dW, X and dY follow */
    CUDNN_ABI_GRAPH_HANDLE = 800,
    CUDNN_ABI_GRAPH_OPERATIONS = 801,
    CUDNN_ABI_TENSOR_ALIGNMENT = 900,
    CUDNN_ABI_TENSOR_TYPE = 901,
    CUDNN_ABI_TENSOR_DIMENSIONS = 902,
    CUDNN_ABI_TENSOR_STRIDES = 903,
    CUDNN_ABI_TENSOR_ID = 906,
    CUDNN_ABI_ENGINE_GLOBAL_INDEX = 1301,
    CUDNN_ABI_ENGINE_NUMERICAL_NOTE = 1303,
    CUDNN_ABI_DEVICE_HANDLE = 2701,
    CUDNN_ABI_DEVICE_TEXT = 2702,
};

enum { CUDNN_ABI_FLOAT = 0, CUDNN_ABI_DOUBLE = 1, CUDNN_ABI_HALF = 2, CUDNN_ABI_BFLOAT16 = 9 };
enum { CUDNN_ABI_CROSS_CORRELATION = 1 };
enum { CUDNN_ABI_MODE_INSTANT = 0, CUDNN_ABI_MODE_FALLBACK = 2 };
enum {
    CUDNN_ABI_NOTE_TENSOR_CORE = 0,
    CUDNN_ABI_NOTE_DOWN_CONVERT_INPUTS = 1,
    CUDNN_ABI_NOTE_NONDETERMINISTIC = 4,
    CUDNN_ABI_NOTES_MAX = 32, /* chosen: more than there are */
};

struct cudnn_abi {
    size_t (*get_version)(void);
    int (*create)(void **ret_handle);
    int (*create_descriptor)(enum cudnn_abi_kind kind, cudnn_abi_descriptor *ret_descriptor);
    int (*destroy_descriptor)(cudnn_abi_descriptor descriptor);
    int (*finalize)(cudnn_abi_descriptor descriptor);
    int (*set)(cudnn_abi_descriptor descriptor, enum cudnn_abi_attribute attribute,
        enum cudnn_abi_type type, int64_t count, const void *values);
    int (*get)(cudnn_abi_descriptor descriptor, enum cudnn_abi_attribute attribute,
        enum cudnn_abi_type type, int64_t most, int64_t *ret_count, void *ret_values);
};

#endif
