/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer types: finds the kind of layer by its class name in PyTorch, timm, transformers or Keras. A
 * table of names is searched first, then a table of name endings; a name in neither is of an
 * unknown kind.
 */
#include <string.h>

#include "base/array.h"
#include "model/format.h"

struct type_row {
    const char *type;
    enum layer_kind kind;
};

/* Types of PyTorch, timm and Keras that do work themselves, and the plain containers. Sorted by
 * strcmp, for bisection. */
static const struct type_row types[] = {
    {"Activation", LAYER_ACTIVATION},
    {"AdaptiveAvgPool1d", LAYER_POOL_GLOBAL},
    {"AdaptiveAvgPool2d", LAYER_POOL_GLOBAL},
    {"AdaptiveAvgPool3d", LAYER_POOL_GLOBAL},
    {"AdaptiveMaxPool1d", LAYER_POOL_GLOBAL},
    {"AdaptiveMaxPool2d", LAYER_POOL_GLOBAL},
    {"AdaptiveMaxPool3d", LAYER_POOL_GLOBAL},
    {"Add", LAYER_MERGE},
    {"AdditiveAttention", LAYER_ATTENTION},
    {"Affine", LAYER_MERGE},
    {"AlphaDropout", LAYER_DROPOUT},
    {"Average", LAYER_MERGE},
    {"AveragePooling1D", LAYER_POOL},
    {"AveragePooling2D", LAYER_POOL},
    {"AveragePooling3D", LAYER_POOL},
    {"AvgPool1d", LAYER_POOL},
    {"AvgPool2d", LAYER_POOL},
    {"AvgPool2dSame", LAYER_POOL},
    {"AvgPool3d", LAYER_POOL},
    {"BatchNorm1d", LAYER_NORM},
    {"BatchNorm2d", LAYER_NORM},
    {"BatchNorm3d", LAYER_NORM},
    {"BatchNormAct2d", LAYER_NORM},
    {"BatchNormalization", LAYER_NORM},
    {"Bidirectional", LAYER_RECURRENT},
    {"Bilinear", LAYER_LINEAR},
    {"BloomGelu", LAYER_ACTIVATION},
    {"CELU", LAYER_ACTIVATION},
    {"Concatenate", LAYER_MERGE},
    {"ConstantPad2d", LAYER_MERGE},
    {"Conv1D", LAYER_LINEAR},
    {"Conv1DTranspose", LAYER_CONV},
    {"Conv1d", LAYER_CONV},
    {"Conv2D", LAYER_CONV},
    {"Conv2DTranspose", LAYER_CONV},
    {"Conv2d", LAYER_CONV},
    {"Conv2dNormActivation", LAYER_CONTAINER},
    {"Conv2dSame", LAYER_CONV},
    {"Conv2dStaticSamePadding", LAYER_CONV},
    {"Conv3D", LAYER_CONV},
    {"Conv3DTranspose", LAYER_CONV},
    {"Conv3d", LAYER_CONV},
    {"Conv3dNormActivation", LAYER_CONTAINER},
    {"ConvBNActivation", LAYER_CONTAINER},
    {"ConvBNReLU", LAYER_CONTAINER},
    {"ConvLSTM2D", LAYER_RECURRENT},
    {"ConvNormActivation", LAYER_CONTAINER},
    {"ConvTranspose1d", LAYER_CONV},
    {"ConvTranspose2d", LAYER_CONV},
    {"ConvTranspose3d", LAYER_CONV},
    {"Cropping2D", LAYER_MERGE},
    {"DataParallel", LAYER_CONTAINER},
    {"Dense", LAYER_LINEAR},
    {"DepthwiseConv1D", LAYER_CONV},
    {"DepthwiseConv2D", LAYER_CONV},
    {"DistributedDataParallel", LAYER_CONTAINER},
    {"Dot", LAYER_MERGE},
    {"DropBlock2d", LAYER_DROPOUT},
    {"DropPath", LAYER_DROPOUT},
    {"Dropout", LAYER_DROPOUT},
    {"Dropout1d", LAYER_DROPOUT},
    {"Dropout2d", LAYER_DROPOUT},
    {"Dropout3d", LAYER_DROPOUT},
    {"ELU", LAYER_ACTIVATION},
    {"EinsumDense", LAYER_LINEAR},
    {"Embedding", LAYER_EMBEDDING},
    {"EmbeddingBag", LAYER_EMBEDDING},
    {"FastAdaptiveAvgPool", LAYER_POOL_GLOBAL},
    {"FastAdaptiveAvgPool2d", LAYER_POOL_GLOBAL},
    {"FeatureAlphaDropout", LAYER_DROPOUT},
    {"Flatten", LAYER_RESHAPE},
    {"FractionalMaxPool2d", LAYER_POOL},
    {"FrozenBatchNorm2d", LAYER_NORM},
    {"Functional", LAYER_CONTAINER},
    {"GELU", LAYER_ACTIVATION},
    {"GLU", LAYER_ACTIVATION},
    {"GRU", LAYER_RECURRENT},
    {"GRUCell", LAYER_RECURRENT},
    {"GaussianDropout", LAYER_DROPOUT},
    {"GaussianNoise", LAYER_DROPOUT},
    {"GlobalAveragePooling1D", LAYER_POOL_GLOBAL},
    {"GlobalAveragePooling2D", LAYER_POOL_GLOBAL},
    {"GlobalAveragePooling3D", LAYER_POOL_GLOBAL},
    {"GlobalMaxPooling1D", LAYER_POOL_GLOBAL},
    {"GlobalMaxPooling2D", LAYER_POOL_GLOBAL},
    {"GlobalMaxPooling3D", LAYER_POOL_GLOBAL},
    {"GroupNorm", LAYER_NORM},
    {"GroupNorm1", LAYER_NORM},
    {"GroupNormAct", LAYER_NORM},
    {"GroupNormalization", LAYER_NORM},
    {"GroupQueryAttention", LAYER_ATTENTION},
    {"HQQLinear", LAYER_LINEAR},
    {"Hardshrink", LAYER_ACTIVATION},
    {"Hardsigmoid", LAYER_ACTIVATION},
    {"Hardswish", LAYER_ACTIVATION},
    {"Hardtanh", LAYER_ACTIVATION},
    {"Identity", LAYER_RESHAPE},
    {"Input", LAYER_INPUT},
    {"InputLayer", LAYER_INPUT},
    {"InstanceNorm1d", LAYER_NORM},
    {"InstanceNorm2d", LAYER_NORM},
    {"InstanceNorm3d", LAYER_NORM},
    {"LPPool1d", LAYER_POOL},
    {"LPPool2d", LAYER_POOL},
    {"LSTM", LAYER_RECURRENT},
    {"LSTMCell", LAYER_RECURRENT},
    {"Lambda", LAYER_MERGE},
    {"LayerNorm", LAYER_NORM},
    {"LayerNorm2d", LAYER_NORM},
    {"LayerNormAct", LAYER_NORM},
    {"LayerNormAct2d", LAYER_NORM},
    {"LayerNormalization", LAYER_NORM},
    {"LayerScale", LAYER_MERGE},
    {"LayerScale2d", LAYER_MERGE},
    {"LazyConv2d", LAYER_CONV},
    {"LazyLinear", LAYER_LINEAR},
    {"LeakyReLU", LAYER_ACTIVATION},
    {"Linear", LAYER_LINEAR},
    {"Linear4bit", LAYER_LINEAR},
    {"Linear8bitLt", LAYER_LINEAR},
    {"LinearFP4", LAYER_LINEAR},
    {"LinearNF4", LAYER_LINEAR},
    {"LocalResponseNorm", LAYER_NORM},
    {"LogSigmoid", LAYER_ACTIVATION},
    {"LogSoftmax", LAYER_ACTIVATION},
    {"MaxPool1d", LAYER_POOL},
    {"MaxPool2d", LAYER_POOL},
    {"MaxPool2dSame", LAYER_POOL},
    {"MaxPool3d", LAYER_POOL},
    {"MaxPooling1D", LAYER_POOL},
    {"MaxPooling2D", LAYER_POOL},
    {"MaxPooling3D", LAYER_POOL},
    {"Maximum", LAYER_MERGE},
    {"Minimum", LAYER_MERGE},
    {"Mish", LAYER_ACTIVATION},
    {"Model", LAYER_CONTAINER},
    {"ModuleDict", LAYER_CONTAINER},
    {"ModuleList", LAYER_CONTAINER},
    {"MultiHeadAttention", LAYER_ATTENTION},
    {"MultiheadAttention", LAYER_ATTENTION},
    {"Multiply", LAYER_MERGE},
    {"NonDynamicQuantizableLinear", LAYER_LINEAR},
    {"NonDynamicallyQuantizableLinear", LAYER_LINEAR},
    {"Normalization", LAYER_NORM},
    {"PReLU", LAYER_ACTIVATION},
    {"ParameterDict", LAYER_CONTAINER},
    {"ParameterList", LAYER_CONTAINER},
    {"Permute", LAYER_RESHAPE},
    {"PixelShuffle", LAYER_MERGE},
    {"PixelUnshuffle", LAYER_MERGE},
    {"QuickGELU", LAYER_ACTIVATION},
    {"RMSNorm", LAYER_NORM},
    {"RMSNormalization", LAYER_NORM},
    {"RNN", LAYER_RECURRENT},
    {"RNNCell", LAYER_RECURRENT},
    {"RReLU", LAYER_ACTIVATION},
    {"ReLU", LAYER_ACTIVATION},
    {"ReLU6", LAYER_ACTIVATION},
    {"ReflectionPad2d", LAYER_MERGE},
    {"RepeatVector", LAYER_RESHAPE},
    {"ReplicationPad2d", LAYER_MERGE},
    {"Rescaling", LAYER_MERGE},
    {"Reshape", LAYER_RESHAPE},
    {"Resize", LAYER_MERGE},
    {"Resizing", LAYER_MERGE},
    {"SELU", LAYER_ACTIVATION},
    {"Scale", LAYER_MERGE},
    {"ScaledStdConv2d", LAYER_CONV},
    {"SeparableConv1D", LAYER_CONV},
    {"SeparableConv2D", LAYER_CONV},
    {"Sequential", LAYER_CONTAINER},
    {"SiLU", LAYER_ACTIVATION},
    {"Sigmoid", LAYER_ACTIVATION},
    {"SimpleRNN", LAYER_RECURRENT},
    {"SlicingOpLambda", LAYER_MERGE},
    {"Softmax", LAYER_ACTIVATION},
    {"Softmax2d", LAYER_ACTIVATION},
    {"Softmin", LAYER_ACTIVATION},
    {"Softplus", LAYER_ACTIVATION},
    {"Softshrink", LAYER_ACTIVATION},
    {"Softsign", LAYER_ACTIVATION},
    {"SpatialDropout1D", LAYER_DROPOUT},
    {"SpatialDropout2D", LAYER_DROPOUT},
    {"SpatialDropout3D", LAYER_DROPOUT},
    {"StdConv2d", LAYER_CONV},
    {"StdConv2dSame", LAYER_CONV},
    {"StochasticDepth", LAYER_DROPOUT},
    {"Subtract", LAYER_MERGE},
    {"SwapAxes", LAYER_RESHAPE},
    {"Swish", LAYER_ACTIVATION},
    {"SyncBatchNorm", LAYER_NORM},
    {"TFOpLambda", LAYER_MERGE},
    {"Tanh", LAYER_ACTIVATION},
    {"Tanhshrink", LAYER_ACTIVATION},
    {"Threshold", LAYER_ACTIVATION},
    {"Unflatten", LAYER_RESHAPE},
    {"UnitNormalization", LAYER_NORM},
    {"UpSampling1D", LAYER_MERGE},
    {"UpSampling2D", LAYER_MERGE},
    {"UpSampling3D", LAYER_MERGE},
    {"Upsample", LAYER_MERGE},
    {"UpsamplingBilinear2d", LAYER_MERGE},
    {"UpsamplingNearest2d", LAYER_MERGE},
    {"WQLinear_Exllama", LAYER_LINEAR},
    {"WQLinear_ExllamaV2", LAYER_LINEAR},
    {"WQLinear_GEMM", LAYER_LINEAR},
    {"WQLinear_GEMV", LAYER_LINEAR},
    {"WQLinear_GEMVFast", LAYER_LINEAR},
    {"WQLinear_IPEX", LAYER_LINEAR},
    {"WQLinear_Marlin", LAYER_LINEAR},
    {"ZeroPad2d", LAYER_MERGE},
    {"ZeroPadding1D", LAYER_MERGE},
    {"ZeroPadding2D", LAYER_MERGE},
    {"ZeroPadding3D", LAYER_MERGE},
};

/* Endings of families whose members begin with the name of a model: NewGELUActivation,
 * LlamaRMSNorm, BertLayerNorm. */
static const struct type_row suffixes[] = {
    {"Activation", LAYER_ACTIVATION},
    {"QuantLinear", LAYER_LINEAR}, /* of GPTQ, by kernel: TritonV2QuantLinear, MarlinQuantLinear */
    {"RMSNorm", LAYER_NORM},
    {"RotaryEmbedding", LAYER_RESHAPE}, /* sines and cosines of positions: small */
    {"LayerNorm", LAYER_NORM},
    {"BatchNorm2d", LAYER_NORM},
    {"RoIAlign", LAYER_POOL_GLOBAL}, /* to a fixed size, of each region */
    {"RoIPool", LAYER_POOL_GLOBAL},
    {"Partition", LAYER_MERGE}, /* a map is copied into windows, and back: WindowDepartition */
    {"Departition", LAYER_MERGE},
};

/* Returns a value below 0, 0 or above 0 when `s` sorts before, equal to or after `type`. */
static int compare_type(struct span s, const char *type)
{
    size_t i = 0;
    while (i < s.size && type[i] && s.at[i] == type[i])
        i++;
    unsigned char ours = i < s.size ? (unsigned char)s.at[i] : 0, theirs = (unsigned char)type[i];
    return ours - theirs;
}

static const struct type_row *first_not_before(struct span s)
{
    size_t low = 0, high = ARRAY_SIZE(types);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_type(s, types[middle].type) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ARRAY_SIZE(types) ? &types[low] : NULL;
}

enum layer_kind layer_kind_of(struct span type)
{
    static const char cut[] = "\xe2\x80\xa6"; /* "GlobalAveragePoo\u2026", as Keras 3 shortens */
    if (type.size == 0)
        return LAYER_OTHER;
    bool shortened = span_ends(type, cut);
    if (shortened)
        type.size -= sizeof cut - 1;
    const struct type_row *row = first_not_before(type);
    if (row && (compare_type(type, row->type) == 0 ||
                   (shortened && type.size >= 4 && strncmp(row->type, type.at, type.size) == 0)))
        return row->kind;
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (span_ends(type, suffixes[i].type))
            return suffixes[i].kind;
    return LAYER_OTHER;
}

const char *layer_kind_name(enum layer_kind kind)
{
    static const char *const names[] = {
        [LAYER_OTHER] = "other",
        [LAYER_CONTAINER] = "container",
        [LAYER_INPUT] = "input",
        [LAYER_CONV] = "conv",
        [LAYER_LINEAR] = "linear",
        [LAYER_NORM] = "norm",
        [LAYER_ACTIVATION] = "activation",
        [LAYER_DROPOUT] = "dropout",
        [LAYER_POOL] = "pool",
        [LAYER_POOL_GLOBAL] = "pool",
        [LAYER_EMBEDDING] = "embedding",
        [LAYER_ATTENTION] = "attention",
        [LAYER_RECURRENT] = "recurrent",
        [LAYER_RESHAPE] = "reshape",
        [LAYER_MERGE] = "merge",
    };
    return names[kind];
}
