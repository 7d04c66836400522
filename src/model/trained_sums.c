/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most prints of a fine-tuning say how many parameters are trained, not which:
 *
 *     trainable params: 121,344 || all params: 27,519,354
 *
 * The usual ways of fine-tuning are few, and their sums have many digits: one that is right to the
 * last digit is taken for the way. Each is tried alone, and with the output layer, which is new in
 * most fine-tunings. Ways that train a few numbers in each block make the gradients flow through
 * the whole network: gradients_reach_all.
 *
 *     the last layers              a new head
 *     the last blocks of a list    "the last two layers", stage 4 of ResNet; where the network has
 *                                  vectors that are no layers (the scales of ConvNeXt's blocks),
 *                                  the only ones whose sum is short by no more than these
 *     adapters                     arXiv:1902.00751: layers in modules called Adapter
 *     normalisations
 *     biases                       BitFit, arXiv:2106.10199
 *     nothing of the layers        prefixes (arXiv:2101.00190) and prompts (arXiv:2104.08691)
 */
#include "model/trained_sums.h"

#include "base/array.h"
#include "model/format.h"
#include "model/module_tree.h"

/* Chosen: lists of blocks that are tried from their ends, so that a text of 50,000 layers takes
 * milliseconds. */
enum { LISTS_MOST = 64 };

static const size_t no_layer = SIZE_MAX;

static bool can_be_trained(const struct layer *layer)
{
    return layer->parameters > 0 && !layer->weight_bits;
}

static void mark_layer(struct layer *layer, bool is_trained)
{
    layer->trainable = is_trained ? TRISTATE_YES : TRISTATE_NO;
}

static size_t find_output(const struct model *model)
{
    for (size_t i = model->n_layers; i-- > 0;)
        if (model->layers[i].leaf && can_be_trained(&model->layers[i]))
            return i;
    return no_layer;
}

/* ---- parts of single layers ---- */

static int64_t bias_of(const struct layer *layer)
{
    if (layer->kind == LAYER_NORM)
        return layer->parameters % 2 == 0 && !span_ends(layer->type, "RMSNorm")
                   ? layer->parameters / 2
                   : 0;
    bool has = (layer->kind == LAYER_LINEAR || layer->kind == LAYER_CONV) &&
               layer->out_size != LAYER_SIZE_UNKNOWN && layer->parameters > 0 &&
               span_find_text(layer->args, "bias=False") == layer->args.size;
    return has ? layer->out_size : 0;
}

static int64_t norm_of(const struct layer *layer)
{
    return layer->kind == LAYER_NORM ? layer->parameters : 0;
}

/* Sets the marks by a part of each layer, with the output layer or without. */
static bool is_part(struct model *model, int64_t count, int64_t (*part_of)(const struct layer *))
{
    size_t output = find_output(model);
    int64_t sum = 0, of_output = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        int64_t part = can_be_trained(&model->layers[i]) ? part_of(&model->layers[i]) : 0;
        mark_layer(&model->layers[i], part > 0 && part == model->layers[i].parameters);
        sum += part;
    }
    if (output != no_layer)
        of_output = model->layers[output].parameters - part_of(&model->layers[output]);
    if (sum == 0 || (sum != count && sum + of_output != count))
        return false;
    if (sum != count)
        mark_layer(&model->layers[output], true);
    return true;
}

/* ---- adapters by their names ---- */

/* Names of the layer that an adapter stands behind or beside. */
static bool is_wrapped(struct span name)
{
    static const char *const names[] = {
        "layer", "base", "base_layer", "module", "original_module", "sublayer"};
    return span_place(name, names, ARRAY_SIZE(names)) >= 0;
}

static bool is_adapter_module(const struct layer *layer)
{
    return !layer->leaf &&
           (span_starts(layer->type, "Adapter") || span_ends(layer->type, "Adapter"));
}

static bool is_adapters(struct model *model, int64_t count)
{
    int within = -1, wrapped = -1; /* depths; -1: in none */
    size_t output = find_output(model);
    int64_t sum = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        struct layer *layer = &model->layers[i];
        within = within >= 0 && layer->depth <= within ? -1 : within;
        wrapped = wrapped >= 0 && layer->depth <= wrapped ? -1 : wrapped;
        if (within >= 0 && wrapped < 0 && layer->depth == within + 1 && is_wrapped(layer->name))
            wrapped = layer->depth;
        mark_layer(layer, within >= 0 && wrapped < 0 && can_be_trained(layer));
        sum += layer->trainable == TRISTATE_YES ? layer->parameters : 0;
        if (within < 0 && is_adapter_module(layer))
            within = layer->depth;
    }
    if (sum > 0 && sum != count && output != no_layer &&
        model->layers[output].trainable == TRISTATE_NO &&
        sum + model->layers[output].parameters == count) {
        mark_layer(&model->layers[output], true);
        return true;
    }
    return sum > 0 && sum == count;
}

/* ---- the last layers, and the last blocks ---- */

bool trained_sums_take_last(struct model *model, int64_t count)
{
    int64_t trained = 0;
    for (size_t i = model->n_layers; i-- > 0;) {
        struct layer *layer = &model->layers[i];
        bool is_trained = trained < count && !layer->weight_bits;
        mark_layer(layer, is_trained);
        trained += is_trained ? layer->parameters : 0;
    }
    return trained == count;
}

static int64_t parameters_in(const struct model *model, size_t begin, size_t end)
{
    int64_t sum = 0;
    for (size_t i = begin; i < end; i++)
        sum += can_be_trained(&model->layers[i]) ? model->layers[i].parameters : 0;
    return sum;
}

static void mark_range(struct model *model, size_t begin, size_t end, bool with_output)
{
    size_t output = find_output(model);
    for (size_t i = 0; i < model->n_layers; i++)
        mark_layer(
            &model->layers[i], (i >= begin && i < end && can_be_trained(&model->layers[i])) ||
                                   (with_output && i == output));
}

/* The last elements of a list, with the output layer or without. */
struct ending {
    size_t begin, end;
    bool with_output;
    int64_t sum;  /* of its layers; 0: none was found */
    bool is_open; /* another one would do as well */
};

/* Does it have `count` parameters, of which up to `loose` are in no layer? */
static void try_ending(
    struct ending *found, const struct ending *tried, int64_t count, int64_t loose)
{
    if (tried->sum > count || count - tried->sum > loose)
        return;
    if (found->sum == 0)
        *found = *tried;
    else
        found->is_open |= found->sum != tried->sum;
}

/* Tries the last elements of the list at `i`, but not all. */
static void try_list(
    const struct model *model, size_t i, int64_t count, int64_t loose, struct ending *found)
{
    size_t end = module_end(model, i), output = find_output(model);
    int64_t of_output = output == no_layer || output < end ? 0 : model->layers[output].parameters,
            behind = 0, whole = parameters_in(model, i, end);
    int depth = model->layers[i].depth + 1;
    for (size_t k = end; k-- > i + 1 && behind <= count;) {
        behind += can_be_trained(&model->layers[k]) ? model->layers[k].parameters : 0;
        if (model->layers[k].depth != depth || behind == 0 || behind >= whole)
            continue;
        try_ending(found, &(struct ending){k, end, false, behind, false}, count, loose);
        if (of_output > 0)
            try_ending(
                found, &(struct ending){k, end, true, behind + of_output, false}, count, loose);
    }
}

static bool is_last_blocks(struct model *model, int64_t count, int64_t loose)
{
    static const char *const lists[] = {"ModuleList", "Sequential"};
    struct ending found = {0};
    int tried = 0;
    for (size_t i = 0; i < model->n_layers && tried < LISTS_MOST; i++) {
        const struct layer *layer = &model->layers[i];
        if (layer->leaf || (!span_is(layer->type, lists[0]) && !span_is(layer->type, lists[1])))
            continue;
        tried++;
        try_list(model, i, count, loose, &found);
    }
    if (found.sum == 0 || found.is_open)
        return false;
    mark_range(model, found.begin, found.end, found.with_output);
    return true;
}

/* Parameters of the network that are in no layer of the text. */
static int64_t loose_parameters(const struct model *model)
{
    int64_t printed = model->parameters_printed.known ? model->parameters_printed.value : 0;
    return printed > model->parameters ? printed - model->parameters : 0;
}

/* ---- vectors outside of the layers ---- */

/* They are counted with the outermost module. */
static bool is_outside(struct model *model, int64_t count)
{
    if (model->n_layers == 0 || model->layers[0].leaf || loose_parameters(model) != count)
        return false;
    for (size_t i = 0; i < model->n_layers; i++)
        mark_layer(&model->layers[i], false);
    model->layers[0].parameters += count;
    model->parameters += count;
    mark_layer(&model->layers[0], true);
    return true;
}

bool trained_sums_find(struct model *model, int64_t count)
{
    if (trained_sums_take_last(model, count) || is_last_blocks(model, count, 0))
        return true;
    if (model->format != SUMMARY_REPR)
        return false;
    model->gradients_reach_all = is_adapters(model, count) || is_part(model, count, norm_of) ||
                                 is_part(model, count, bias_of) || is_outside(model, count);
    return model->gradients_reach_all || is_last_blocks(model, count, loose_parameters(model));
}
