/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of each layer's output for one sample.
 *
 * Shapes in the text are used; they are scaled if they were printed for another sequence length. A
 * printed module has no shapes: then the size of a layer over tokens is the sequence length times
 * its width, which follows from the constructor's arguments. Where no length is given, it is the
 * number of positions that the network has embeddings for.
 *
 * Example: the output of Linear(in_features=768, out_features=3072) over 128 tokens has 128 * 3072
 * elements.
 */
#include "estimator/physics/extent.h"

#include <math.h>

#include "base/array.h"
#include "model/format.h"

enum { UNUSED_ROWS = 2 }; /* longest_sequence */

static bool is_convolutional(const struct model *model)
{
    for (size_t i = 0; i < model->n_layers; i++)
        if (model->layers[i].kind == LAYER_CONV || model->layers[i].kind == LAYER_POOL)
            return true;
    return false;
}

/* Returns the first embedding whose shape shows tokens, since one that is shared may be listed
 * first without a shape; else the first. */
static const struct layer *first_embedding(const struct model *model)
{
    const struct layer *first = NULL;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (layer->kind == LAYER_EMBEDDING && layer->rank == 2)
            return layer;
        if (layer->kind == LAYER_EMBEDDING && !first)
            first = layer;
    }
    return first;
}

static bool is_position_table(const struct layer *layer)
{
    static const char *const names[] = {"wpe", "pos_embed", "positional_embedding"};
    bool is = span_find_text(layer->name, "position") < layer->name.size;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        is |= span_starts(layer->name, names[i]);
    return is && layer->kind == LAYER_EMBEDDING && layer->in_size != LAYER_SIZE_UNKNOWN;
}

/* Returns the tokens for which a network has embeddings of positions, and so the longest
 * sequence that it takes; 0: it has none, or tables of several lengths. RoBERTa's and OPT's tables
 * have two rows more than positions. */
static double longest_sequence(const struct model *model)
{
    int64_t rows = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (!is_position_table(layer))
            continue;
        if (rows != 0 && rows != layer->in_size)
            return 0;
        rows = layer->in_size;
    }
    int64_t without = rows - UNUSED_ROWS;
    return without > 1 && (without & (without - 1)) == 0 ? (double)without : (double)rows;
}

int extent_context_init(const struct estimate_request *request, struct extent_context *ret_context,
    const char **ret_why)
{
    const struct model *model = request->model;
    const struct layer *embedding = first_embedding(model);
    struct extent_context context = {.model = model, .sequence = (double)request->sequence_length};
    context.from_arguments = !model->activations.known;
    if (!context.from_arguments && embedding && embedding->rank == 2)
        context.shown_sequence = (double)embedding->shape[0];
    if (context.sequence == 0)
        context.sequence = context.shown_sequence;
    if (context.from_arguments && is_convolutional(model)) {
        *ret_why =
            "the summary holds no output shapes: give the shape of one sample with --input, print it "
            "with torchinfo or torchsummary, or give --export";
        return ESTIMATE_UNKNOWN;
    }
    if (context.from_arguments && embedding && context.sequence == 0) {
        context.sequence = longest_sequence(model);
        context.is_longest = context.sequence > 0;
    }
    if (context.from_arguments && embedding && context.sequence == 0) {
        *ret_why = "the summary holds no output shapes: give the length of the sequence with --seq";
        return ESTIMATE_UNKNOWN;
    }
    if (context.from_arguments && context.sequence == 0)
        context.sequence = 1;
    *ret_context = context;
    return 0;
}

/* Converts a shape to the requested sequence length; its features do not change. */
static struct extent from_shape(const struct extent_context *context, const struct layer *layer)
{
    struct extent extent = {.elements = (double)layer->activations.value};
    if (layer->rank == LAYER_RANK_UNKNOWN)
        return extent;
    double shown = context->shown_sequence, ratio = shown > 0 ? context->sequence / shown : 1;
    extent.first = (double)layer->shape[0];
    extent.last = (double)layer->shape[layer->rank - 1];
    if (ratio == 1 || layer->rank < 2)
        return extent;
    bool scores = layer->rank >= 3 && extent.last == shown &&
                  (double)layer->shape[layer->rank - 2] == shown;
    for (int i = 0; i < layer->rank - 1 + scores; i++)
        if ((double)layer->shape[i] == shown)
            extent.elements *= ratio;
    extent.first *= extent.first == shown ? ratio : 1;
    extent.last *= scores ? ratio : 1;
    return extent;
}

/* Hugging Face's Conv1D prints no sizes in older versions: `out` follows from its in x out + out
 * parameters. */
static double width_of(const struct layer *layer, struct extent before)
{
    switch (layer->kind) {
    case LAYER_EMBEDDING:
    case LAYER_RECURRENT:
        return (double)layer->out_size;
    case LAYER_NORM:
        return layer->in_size != LAYER_SIZE_UNKNOWN ? (double)layer->in_size : before.last;
    case LAYER_LINEAR:
        if (layer->out_size == LAYER_SIZE_UNKNOWN && before.last > 0)
            return floor((double)layer->parameters / (before.last + 1));
        return (double)layer->out_size;
    default:
        return before.last;
    }
}

struct extent extent_of(const struct extent_context *context, size_t i, struct extent before)
{
    const struct layer *layer = &context->model->layers[i];
    if (!context->from_arguments)
        return layer->activations.known ? from_shape(context, layer) : EXTENT_UNKNOWN;
    double width = width_of(layer, before);
    return (struct extent){
        .elements = width * context->sequence, .first = context->sequence, .last = width};
}

bool extent_is_scale_of(struct extent scale, struct extent map)
{
    return scale.first == map.first && scale.elements == scale.first && map.elements > map.first;
}
