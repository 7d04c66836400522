/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of GPUMemNet's networks (thesis, section 5.4): counts of layers, the logarithms of
 * sizes and of the batch, and the sequence of layers as tokens of type, activations and parameters.
 */
#include "estimator/gpumemnet/gpumemnet_features.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "training/optimizer.h"

/* Fraction of the parameters in layers that blocks hide. Chosen: with more, too many layers are not
 * counted. */
static const double hidden_share_max = 0.1;

const char *gpumemnet_family_name(enum gpumemnet_family family)
{
    static const char *const names[GPUMEMNET_FAMILIES] = {"mlp", "cnn", "transformer"};
    return names[family];
}

static bool is_counted(const struct layer *layer)
{
    return layer->leaf && layer->kind != LAYER_INPUT && layer->kind != LAYER_CONTAINER;
}

/* ---- the family ---- */

/* Does the layer normalise the channels of one position, as in Transformers: layer norm, RMS
 * norm? */
static bool is_row_norm(const struct layer *layer)
{
    return layer->kind == LAYER_NORM && !span_starts(layer->type, "Batch") &&
           !span_starts(layer->type, "Group");
}

/* Chosen: a Transformer over patches has one convolution and dozens of linear layers, a CNN with
 * row norms (ConvNeXt) two linear layers for each convolution. */
enum { LINEARS_PER_CONV = 4 };

/*
 * Finds the family by the layers, not by the names of containers: many Transformers print only the
 * linear layers of their attention. A Transformer has row norms, a layer that makes positions of
 * the input (an embedding, or a convolution over patches), and mostly linear layers.
 *
 * Returns false for a recurrent network and for one of unknown layers.
 */
static bool family_of(const struct model *model, enum gpumemnet_family *ret_family)
{
    size_t n[LAYER_MERGE + 1] = {0}, row_norms = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        if (!is_counted(&model->layers[i]))
            continue;
        n[model->layers[i].kind]++;
        row_norms += is_row_norm(&model->layers[i]);
    }
    bool places = n[LAYER_EMBEDDING] + n[LAYER_CONV] > 0;
    if (n[LAYER_ATTENTION] ||
        (row_norms && places && n[LAYER_LINEAR] > LINEARS_PER_CONV * n[LAYER_CONV]))
        *ret_family = GPUMEMNET_TRANSFORMER;
    else
        *ret_family = n[LAYER_CONV] ? GPUMEMNET_CNN : GPUMEMNET_MLP;
    return n[LAYER_RECURRENT] == 0 && n[LAYER_ATTENTION] + n[LAYER_CONV] + n[LAYER_LINEAR] > 0;
}

/* ---- codes: the weights were trained with them, so new ones go to the end ---- */

static float code_of(enum layer_kind kind)
{
    static const unsigned char codes[] = {
        [LAYER_LINEAR] = 1,
        [LAYER_CONV] = 2,
        [LAYER_NORM] = 3,
        [LAYER_ACTIVATION] = 4,
        [LAYER_DROPOUT] = 5,
        [LAYER_POOL] = 6,
        [LAYER_POOL_GLOBAL] = 7,
        [LAYER_EMBEDDING] = 8,
        [LAYER_ATTENTION] = 9,
        [LAYER_RECURRENT] = 10,
        [LAYER_RESHAPE] = 11,
        [LAYER_MERGE] = 12,
    };
    return codes[kind];
}

/* Returns the position of an activation function, by PyTorch's names, on a circle on which similar
 * functions are neighbours; -1: another type. */
static int function_of(struct span type)
{
    static const char *const functions[] = {"ReLU", "ReLU6", "LeakyReLU", "PReLU", "RReLU", "ELU",
        "SELU", "CELU", "GELU", "SiLU", "Mish", "Hardswish", "Tanh", "Sigmoid", "Softplus",
        "Softsign", "Softmax"};
    return span_place(type, functions, ARRAY_SIZE(functions));
}

static void set_function(const struct model *model, float value[GPUMEMNET_VALUES])
{
    enum { CIRCLE = 24 }; /* chosen: positions; some are free for further functions */
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        int function = layer->kind == LAYER_ACTIVATION ? function_of(layer->type) : -1;
        if (function < 0)
            continue;
        double angle = 2 * M_PI * function / CIRCLE;
        value[VALUE_FUNCTION_SIN] = (float)sin(angle);
        value[VALUE_FUNCTION_COS] = (float)cos(angle);
        return;
    }
}

/* ---- values ---- */

static void set_counts(const struct model *model, float value[GPUMEMNET_VALUES])
{
    static const enum gpumemnet_value counted[] = {[LAYER_LINEAR] = VALUE_LINEARS,
        [LAYER_CONV] = VALUE_CONVS,
        [LAYER_NORM] = VALUE_NORMS,
        [LAYER_DROPOUT] = VALUE_DROPOUTS};
    for (size_t i = 0; i < model->n_layers; i++) {
        enum layer_kind kind = model->layers[i].kind;
        if (!is_counted(&model->layers[i]))
            continue;
        value[VALUE_DEPTH]++;
        if (kind < ARRAY_SIZE(counted) && counted[kind] != VALUE_DEPTH)
            value[counted[kind]]++;
    }
    for (int i = VALUE_DEPTH; i <= VALUE_DROPOUTS; i++)
        value[i] = log1pf(value[i]);
}

static void set_sizes(
    const struct estimate_request *request, double batch, float value[GPUMEMNET_VALUES])
{
    double activations = (double)request->model->activations.value;
    value[VALUE_BATCH] = (float)log1p(batch);
    value[VALUE_PARAMETERS] = (float)log1p((double)request->model->parameters);
    value[VALUE_ACTIVATIONS] = (float)log1p(activations);
    value[VALUE_BATCH_ACTIVATIONS] = (float)log1p(batch * activations);
    value[VALUE_STATES] = (float)optimizer_traits(request->optimizer)->states;
    value[VALUE_HALF] = precision_is_autocast(request->precision);
}

static int set_tokens(const struct model *model, struct gpumemnet_features *features)
{
    features->tokens = calloc(model->n_layers, sizeof *features->tokens);
    if (!features->tokens)
        return -ENOMEM;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (!is_counted(layer))
            continue;
        float *token = features->tokens[features->n_tokens++];
        token[TOKEN_TYPE] = code_of(layer->kind);
        token[TOKEN_ACTIVATIONS] = (float)log1p((double)layer->activations.value);
        token[TOKEN_PARAMETERS] = (float)log1p((double)layer->parameters);
    }
    return 0;
}

static const char *why_not(const struct model *model, const struct count *batch)
{
    if (!model)
        return "needs a model summary";
    if (!batch->known)
        return ESTIMATE_NO_BATCH;
    if (!model->activations.known)
        return "the summary holds no output shapes, so the activations are not known";
    if ((double)model->parameters_hidden > hidden_share_max * (double)model->parameters)
        return "the summary hides the layers inside its blocks: print it with a greater depth";
    return NULL;
}

int gpumemnet_features_init(const struct estimate_request *request,
    struct gpumemnet_features *ret_features, const char **ret_why)
{
    const struct model *model = request->model;
    struct count batch = estimate_batch(request);
    *ret_features = (struct gpumemnet_features){0};
    *ret_why = why_not(model, &batch);
    if (!*ret_why && !family_of(model, &ret_features->family))
        *ret_why = "the network is no MLP, CNN or Transformer";
    if (*ret_why)
        return ESTIMATE_UNKNOWN;
    set_counts(model, ret_features->value);
    set_sizes(request, (double)batch.value, ret_features->value);
    set_function(model, ret_features->value);
    return set_tokens(model, ret_features);
}

void gpumemnet_features_fini(struct gpumemnet_features *features)
{
    free(features->tokens);
    *features = (struct gpumemnet_features){0};
}
