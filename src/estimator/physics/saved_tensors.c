/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors that autograd saves for the gradient of each type of layer: a table by type, and a
 * rule by kind for types that are not in it. From PyTorch's tools/autograd/derivatives.yaml: a
 * formula that names `self` needs the input, one that names `result` the output.
 *
 * Example: the formula of relu names `result`, so ReLU saves its output and may work in place;
 * that of gelu names `self`, so GELU saves its input.
 */
#include "estimator/physics/saved_tensors.h"

#include <stddef.h>

#include "base/array.h"

enum { MASK_BYTES = 1, INDEX_BYTES = 8 }; /* of torch.bool and torch.int64 */

struct row {
    const char *type;
    struct saved_tensors keep;
};

/* Layers that differ from their kind. Activations that are not here keep their input. */
static const struct row rows[] = {
    {"ReLU", {.output = true, .in_place = true}},
    {"Threshold", {.output = true, .in_place = true}},
    {"Sigmoid", {.output = true}},
    {"Tanh", {.output = true}},
    {"Softmax", {.output = true, .single_precision = true}},
    {"Softmax2d", {.output = true, .single_precision = true}},
    {"Softmin", {.output = true, .single_precision = true}},
    {"LogSoftmax", {.output = true, .single_precision = true}},
    {"Softplus", {.input = true, .single_precision = true}},
    {"Softsign", {.input = true, .maps = 1}},
    {"QuickGELU", {.input = true, .maps = 1}},
    {"QuickGELUActivation", {.input = true, .maps = 1}},
    /* In Python: tanh, its sum with 1 and half the input are kept; a power, which autocast computes
       in 32 bit, is in it. */
    {"NewGELUActivation", {.input = true, .maps = 3, .raises = true}},
    {"FastGELUActivation", {.input = true, .maps = 4}},
    {"DropPath", {.bytes = 0}},
    {"StochasticDepth", {.bytes = 0}},
    {"Dropout2d", {.bytes = 0}},
    {"Dropout3d", {.bytes = 0}},
    {"FeatureAlphaDropout", {.bytes = 0}},
    {"MaxPool1d", {.input = true, .bytes = INDEX_BYTES}},
    {"MaxPool2d", {.input = true, .bytes = INDEX_BYTES}},
    {"MaxPool2dSame", {.input = true, .bytes = INDEX_BYTES}},
    {"MaxPool3d", {.input = true, .bytes = INDEX_BYTES}},
    {"MaxPooling1D", {.input = true, .bytes = INDEX_BYTES}},
    {"MaxPooling2D", {.input = true, .bytes = INDEX_BYTES}},
    {"AdaptiveMaxPool2d", {.input = true, .bytes = INDEX_BYTES}},
    {"Affine", {.input = true, .promotes = true}},
    {"LayerScale", {.input = true, .promotes = true}},
    {"LayerScale2d", {.input = true, .promotes = true}},
    {"Scale", {.input = true, .promotes = true}},
    {"RMSNorm", {.input = true, .single_precision = true}},
};

static struct saved_tensors of_kind(const struct layer *layer)
{
    switch (layer->kind) {
    case LAYER_CONV:
    case LAYER_LINEAR:
    case LAYER_ATTENTION:
        return (struct saved_tensors){.input = true, .half_precision = true};
    case LAYER_RECURRENT:
        return (struct saved_tensors){
            .input = true, .output = true, .maps = 5, .half_precision = true}; /* cuDNN's reserve */
    case LAYER_NORM: {
        struct span type = layer->type;
        if (span_starts(type, "LayerNorm") || span_starts(type, "GroupNorm"))
            return (struct saved_tensors){.input = true, .single_precision = true};
        bool python = type.size > 7 &&
                      span_is((struct span){type.at + type.size - 7, 7}, "RMSNorm");
        return (struct saved_tensors){.input = true, .maps = python ? 2 : 0, .raised = python};
    }
    case LAYER_ACTIVATION:
    case LAYER_POOL:
        return (struct saved_tensors){.input = true};
    case LAYER_DROPOUT:
        return (struct saved_tensors){.bytes = MASK_BYTES};
    case LAYER_EMBEDDING:
        return (struct saved_tensors){.bytes = 0};
    case LAYER_OTHER:
        return (struct saved_tensors){.input = true, .output = true};
    default:
        return (struct saved_tensors){.bytes = 0};
    }
}

struct saved_tensors saved_tensors_of(const struct layer *layer)
{
    struct saved_tensors keep = of_kind(layer);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (span_is(layer->type, rows[i].type))
            keep = rows[i].keep;
    if (layer->in_place == TRISTATE_NO)
        keep.in_place = false;
    return keep;
}
