/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tape of a model: goes through the layers of its summary and appends one operation after the
 * other.
 *
 * A summary lists layers, not the program that calls them. So the tape is put together in order:
 * layer_op.c makes an operation of a layer, layer_input.c finds the tensor that the layer is
 * applied to, attention.c, blocks.c and branches.c add the operations in the code of the modules
 * around it, and library_rules.c has the rules of published libraries. Each guess is counted in the
 * tape's doubts.
 *
 * Example: for the rows Conv2d [64, 56, 56], BatchNorm2d [64, 56, 56], ReLU [64, 56, 56] the tape
 * has the batch (its size from the convolution's parameters) and three operations. The batch norm
 * keeps its input, the convolution's output; the ReLU works in place and keeps its output, which is
 * the batch norm's memory.
 */
#include "estimator/physics/tape_build.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "estimator/physics/adapters.h"
#include "estimator/physics/attention.h"
#include "estimator/physics/block_range.h"
#include "estimator/physics/blocks.h"
#include "estimator/physics/branches.h"
#include "estimator/physics/builder.h"
#include "estimator/physics/layer_op.h"
#include "estimator/physics/library_rules.h"
#include "estimator/physics/partition.h"
#include "estimator/physics/trained_part.h"

/* Chosen: the number of layers after a linear one that are searched for its activation. Printed
 * modules list it next, or after a dropout and a norm. */
enum { ACTIVATION_WITHIN = 3 };

enum { HEAD_SCALES = 3, HEAD_MAPS = 8 }; /* keep_head_maps */
/* Chosen: scales of a detector's heads are nearer. A search of all for each takes seconds. */
enum { HEADS_APART = 1000 };

/* Was the last operation a linear layer, or one with its adapter? */
static bool follows_linear(const struct builder *builder)
{
    const struct tape *tape = builder->tape;
    return tape->n_ops > 0 && (tape->ops[tape->n_ops - 1].kind == LAYER_LINEAR ||
                                  builder->adapted == builder->current);
}

/*
 * Some printed modules list an activation after both layers around it ("fc1, fc2, act"). Returns
 * the index of the activation that belongs before linear layer `i`; 0: none.
 */
static size_t activation_before(const struct builder *builder, size_t i)
{
    const struct model *model = builder->extents.model;
    const struct layer *layer = &model->layers[i];
    bool is_base = builder_is_adapting(builder) && i == builder->adapter.base;
    size_t after = is_base ? builder->adapter.end : i + 1; /* of it and its adapter */
    int depth = is_base ? layer->depth - 1 : layer->depth;
    if (!builder->extents.from_arguments || !follows_linear(builder))
        return 0;
    double width = builder_extent(builder, builder->current).last;
    bool narrows = layer->in_size != LAYER_SIZE_UNKNOWN
                       ? (double)layer->in_size == width && layer->out_size < layer->in_size
                       : (double)layer->parameters < width * width;
    for (size_t k = after; narrows && k < model->n_layers && k < after + ACTIVATION_WITHIN; k++) {
        if (model->layers[k].depth != depth || !model->layers[k].leaf)
            return 0;
        if (model->layers[k].kind == LAYER_ACTIVATION)
            return k;
    }
    return 0;
}

/* The output layer of nn.MultiheadAttention is used as a function; the attention counts for it. */
static bool within_attention(const struct builder *builder, size_t i)
{
    const struct layer *layers = builder->extents.model->layers;
    size_t parent = i;
    while (parent > 0 && layers[parent].depth >= layers[i].depth)
        parent--;
    return layers[parent].depth < layers[i].depth && layers[parent].kind == LAYER_ATTENTION;
}

static int take_layer(struct builder *builder, size_t i)
{
    const struct layer *layer = &builder->extents.model->layers[i];
    struct extent before = builder->current == TAPE_NONE
                               ? EXTENT_UNKNOWN
                               : builder_extent(builder, builder->current);
    struct extent extent = partition_extent(
        builder, layer, extent_of(&builder->extents, i, before));
    builder->done[i] = true;
    if (layer->kind == LAYER_NORM && layer->rank == 1 && before.elements > before.last &&
        extent.elements == before.last)
        extent = before; /* of tokens that were made one long batch */
    if (!extent_is_known(extent)) {
        trained_part_add_loose(builder, layer, layer->shared ? 0 : (double)layer->parameters);
        builder->tape->doubts.unshaped_share += !within_attention(builder, i);
        return 0;
    }
    return layer_op_append(builder, i, extent);
}

/* Tests whether layer `i` is the activation that a residual block begins with and then multiplies
 * by a number. */
static bool begins_scaled_branch(const struct builder *builder, size_t i)
{
    const struct model *model = builder->extents.model;
    const struct layer *layer = &model->layers[i];
    bool begins = i > 0 && layer->kind == LAYER_ACTIVATION && layer[-1].depth < layer->depth &&
                  library_adds_residual(layer[-1].type);
    for (size_t k = i + 1; begins && k < model->n_layers; k++) {
        if (model->layers[k].depth < layer->depth)
            return false;
        if (model->layers[k].kind == LAYER_CONV)
            return library_scales_branch(model->layers[k].type);
    }
    return false;
}

static int scale_branch(struct builder *builder)
{
    int r = builder_merge(
        builder, builder->current, TAPE_NONE, false, builder_extent(builder, builder->current));
    return r < 0 ? r : 0;
}

static int take_in_order(struct builder *builder, size_t i)
{
    size_t first = builder->extents.model->layers[i].kind == LAYER_LINEAR
                       ? activation_before(builder, i)
                       : 0;
    int r = first ? take_layer(builder, first) : 0;
    r = r < 0 ? r : take_layer(builder, i);
    return r == 0 && begins_scaled_branch(builder, i) ? scale_branch(builder) : r;
}

static bool skips_layer(const struct builder *builder, const struct layer *layer)
{
    if (layer->kind == LAYER_DROPOUT && layer->rank > 1)
        return layer->drops == TRISTATE_NO ||
               (layer->drops == TRISTATE_UNKNOWN && !builder->drops_within);
    return layer->kind == LAYER_RESHAPE || layer->kind == LAYER_INPUT;
}

static int take_all(struct builder *builder)
{
    const struct model *model = builder->extents.model;
    bool tree = model->format != SUMMARY_TORCHSUMMARY;
    struct block_stack blocks = {.n = 0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        r = adapters_enter(builder, i);
        r = r == 0 ? blocks_end(builder, &blocks, layer->depth) : r;
        r = r == 0 && tree ? branches_enter(builder, i) : r;
        if (r < 0 || builder->done[i])
            continue;
        int whole = attention_take_whole(builder, i);
        if (whole != 0) {
            r = whole < 0 ? whole : 0;
            continue;
        }
        r = attention_enter(builder, layer);
        if (r < 0)
            break;
        if (layer->leaf && !skips_layer(builder, layer))
            r = take_in_order(builder, i);
        else if (layer->leaf)
            r = attention_scores(builder, layer);
        else if (tree)
            blocks_begin(builder, &blocks, i);
        else
            r = block_end(builder, &(struct open_block){(int)i, TAPE_NONE, 0});
        if (!layer->leaf)
            trained_part_add_loose(builder, layer, (double)layer->parameters);
    }
    r = r < 0 ? r : adapters_enter(builder, model->n_layers);
    return r < 0 ? r : blocks_end(builder, &blocks, 0);
}

/* A convolution whose output is a result of the network, besides the last one. */
static bool is_head(const struct builder *builder, size_t i)
{
    const struct op *op = &builder->tape->ops[i];
    return op->kind == LAYER_CONV && !builder->consumed[op->output] &&
           op->output != (int)builder->tape->n_tensors - 1;
}

/*
 * Keeps the tensors that a detector's loss needs of the maps of its heads, which no layer reads. A
 * head is a convolution that is applied at three scales or more. The focal loss (arXiv:1708.02002,
 * torchvision.ops.sigmoid_focal_loss) computes in 32 bit for each element and keeps logits,
 * probability, targets and their complement, cross-entropy, its weight, the power and its base.
 */
static void keep_maps_of_head(struct builder *builder, size_t i)
{
    struct tape *tape = builder->tape;
    const struct tensor *map = &tape->tensors[tape->ops[i].output];
    size_t from = i > HEADS_APART ? i - HEADS_APART : 0;
    size_t end = tape->n_ops - i > HEADS_APART ? i + HEADS_APART : tape->n_ops;
    double last_size = 0;
    bool again = false;
    int scales = 0;
    for (size_t k = from; k < end; k++) {
        const struct tensor *other = &tape->tensors[tape->ops[k].output];
        if (is_head(builder, k) && other->first == map->first && other->elements != last_size) {
            last_size = other->elements;
            again |= tape->ops[k].weight == 0;
            scales++;
        }
    }
    if (scales < HEAD_SCALES || !again)
        return;
    tape->ops[i].kept_bytes += HEAD_MAPS * SINGLE_BYTES * map->elements;
    tape->ops[i].kept_map = SINGLE_BYTES * map->elements;
}

static void keep_head_maps(struct builder *builder)
{
    for (size_t i = 0; i < builder->tape->n_ops; i++)
        if (is_head(builder, i))
            keep_maps_of_head(builder, i);
}

/* Returns how many times smaller than the image's the sides of the last map are; 0: the network
 * does not end in a map for it. */
static double image_ratio(const struct builder *builder)
{
    const struct tape *tape = builder->tape;
    const struct tensor *data = &tape->tensors[0];
    if (builder->current != (int)tape->n_tensors - 1 || !data->is_data)
        return 0;
    for (size_t i = 0; i < tape->n_ops; i++)
        if (is_head(builder, i))
            return 0; /* a detector, whose maps are several */
    const struct op *last = &tape->ops[tape->n_ops - 1];
    const struct tensor *map = &tape->tensors[builder->current];
    bool is_map = last->kind == LAYER_CONV && last->window == 1 && last->bias > 0 &&
                  map->elements > map->first;
    return is_map ? sqrt(data->elements / data->first / (map->elements / map->first)) : 0;
}

/*
 * A network over images that ends in a convolution of one tap, with biases, labels each pixel: the
 * loss enlarges the map to the image's sides, in 32 bit. Such maps have a half, a quarter or an
 * eighth of these. It is a guess, since heatmaps and codes end so, too: measure_guess.
 */
static int enlarge_to_image(struct builder *builder)
{
    double ratio = image_ratio(builder);
    if (ratio != 2 && ratio != 4 && ratio != 8)
        return 0;
    struct extent image = builder_extent(builder, builder->current);
    image.elements *= ratio * ratio;
    image.last *= ratio;
    int r = builder_merge(builder, builder->current, TAPE_NONE, false, image);
    if (r < 0)
        return r;
    builder->tape->tensors[r].element_bytes = SINGLE_BYTES;
    builder->tape->result = (int)builder->tape->n_tensors - 2;
    return 0;
}

static double count_most_taps(const struct tape *tape)
{
    double most = 0;
    for (size_t i = 0; i < tape->n_ops && !tape_is_half(tape); i++) {
        const struct op *op = &tape->ops[i];
        bool counts = op->kind == LAYER_CONV && op->inputs[0] != TAPE_NONE &&
                      !tape->tensors[op->inputs[0]].is_data;
        most = counts ? fmax(most, op->window) : most;
    }
    return most;
}

/* Fine-tunings of models that compute their own loss are mostly run by a loop that takes the loss
 * out of the output, as transformers' Trainer does; its output is not held. */
static bool is_tuned_by_library(const struct builder *builder)
{
    const struct model *model = builder->extents.model;
    return !builder->tape->division.sends_result && model->parameters_trained.known &&
           model->n_layers > 0 && !model->layers[0].leaf && library_raises_logits(model);
}

static void sum_up(struct builder *builder)
{
    struct tape *tape = builder->tape;
    const struct model *model = builder->extents.model;
    tape->parameters = (double)model->parameters;
    tape->sequence = builder->extents.sequence;
    tape->sequence_is_longest = builder->extents.is_longest;
    tape->doubts.most_taps = count_most_taps(tape);
    tape->raises_logits = library_raises_logits(model);
    tape->releases_result = is_tuned_by_library(builder);
    tape->doubts.unshaped_share /= (double)(model->n_leaves ? model->n_leaves : 1);
    if (builder->all_elements > 0)
        tape->doubts.unknown_share = builder->unknown_elements / builder->all_elements;
    if (model->parameters > 0)
        tape->doubts.hidden_share = (double)model->parameters_hidden / (double)model->parameters;
}

/* Gradient checkpointing, as transformers has it: of each repeated block. */
static int find_recomputed(struct builder *builder)
{
    struct tape *tape = builder->tape;
    struct block_ranges blocks;
    if (block_ranges_find(tape, builder->extents.model, &blocks) < 0)
        return fault_set(builder->fault, ENOMEM, "out of memory");
    tape->recomputed = blocks.ranges;
    tape->n_recomputed = blocks.n;
    return 0;
}

/* Tests whether activations are in 16 bit by autocast: as the precision says; where none is given,
 * if the network's weights are quantised. The request has a model. */
static bool tape_is_autocast(const struct estimate_request *request)
{
    bool is_open = request->precision == PRECISION_NOT_GIVEN;
    return precision_is_autocast(request->precision) || (is_open && request->model->is_quantised);
}

int tape_build(const struct estimate_request *request, struct fault *fault, struct tape *ret_tape,
    const char **ret_why)
{
    bool autocast = tape_is_autocast(request);
    struct tape tape = {.batch = (double)estimate_batch(request).value,
        .autocast = autocast,
        .half_weights = precision_has_half_weights(request->precision),
        .division = division_of(request),
        .gradients_reach_all = request->model->gradients_reach_all,
        .doubts = {.unknown_layer = TAPE_NONE}};
    struct builder builder = {
        .tape = &tape, .current = TAPE_NONE, .adapted = TAPE_NONE, .fault = fault};
    int r = extent_context_init(request, &builder.extents, ret_why);
    if (r != 0)
        return r;
    builder.calls_activations = library_calls_activations(request->model);
    builder.drops_within = library_drops_within(request->model);
    builder.done = calloc(request->model->n_layers + 1, sizeof *builder.done);
    r = builder.done ? take_all(&builder) : fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        keep_head_maps(&builder);
    tape.result = (int)tape.n_tensors - 1;
    if (r == 0 && tape.n_ops > 0)
        r = enlarge_to_image(&builder);
    trained_part_mark(&tape);
    sum_up(&builder);
    if (r == 0 && request->checkpointing)
        r = find_recomputed(&builder);
    builder_fini(&builder);
    if (r == 0 && tape.n_ops == 0) {
        *ret_why = "no layer of the summary has a size";
        r = ESTIMATE_UNKNOWN;
    }
    if (r != 0)
        tape_fini(&tape);
    else
        *ret_tape = tape;
    return r;
}

void tape_fini(struct tape *tape)
{
    free(tape->ops);
    free(tape->tensors);
    free(tape->recomputed);
    *tape = (struct tape){0};
}
