/* SPDX-License-Identifier: Apache-2.0 */
#include "estimator/physics/tape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "estimator/physics/attention.h"
#include "estimator/physics/builder.h"
#include "estimator/physics/layer_input.h"
#include "estimator/physics/recurrent.h"
#include "estimator/physics/saved_tensors.h"

/* A block of a tree that the layers now taken stand in. */
struct open_block {
    int layer, entry; /* the tensor that was current when it began; TAPE_NONE */
    int first;        /* of the tensors made in it */
};

/* Weight and bias apart, so that each rounds for itself. */
static void split_parameters(const struct layer *layer, struct extent extent, struct op *op)
{
    double all = (double)layer->parameters,
           outputs = layer->kind == LAYER_CONV ? extent.first : extent.last;
    op->weight = all;
    if (layer->kind == LAYER_NORM) {
        op->weight = op->bias = all / 2;
        op->buffers = span_starts(layer->type, "BatchNorm") ? all : 0;
    } else if ((layer->kind == LAYER_CONV || layer->kind == LAYER_LINEAR) && outputs > 0 &&
               all > 2 * outputs) {
        double without = all - outputs;
        const double in = layer->in_size > 0 ? (double)layer->in_size : 0;
        bool bias = in > 0 && layer->kind == LAYER_LINEAR ? without == in * outputs
                                                          : (int64_t)(all / outputs) % 2 == 1;
        op->weight = bias ? without : all;
        op->bias = bias ? outputs : 0;
    }
}

/* Multiply-adds per sample: every weight once per place of the output. */
static double macs_of(const struct layer *layer, struct extent extent, const struct op *op)
{
    if (layer->kind == LAYER_CONV && extent.first > 0)
        return op->weight * extent.elements / extent.first;
    if (layer->kind == LAYER_LINEAR && extent.last > 0)
        return (op->weight + op->tied) * extent.elements / extent.last;
    if (layer->kind == LAYER_RECURRENT || layer->kind == LAYER_ATTENTION)
        return op->weight * (extent.last > 0 ? extent.elements / extent.last : 1);
    return 0;
}

/* What torch.autocast makes of it: the type of the output, and casts that are kept. */
static int apply_autocast(
    const struct builder *builder, const struct saved_tensors *keep, struct op *op)
{
    const struct tape *tape = builder->tape;
    const struct tensor *input = op->inputs[0] == TAPE_NONE ? NULL : &tape->tensors[op->inputs[0]];
    int bytes = input ? input->element_bytes : 4;
    if (!tape->autocast)
        return 4;
    if (keep->half_precision) {
        if (input && bytes == 4) { /* the 16-bit copy is kept, not the input */
            op->kept_bytes += 2 * input->elements;
            op->keeps_inputs = false;
        }
        return 2;
    }
    if (keep->promotes || keep->raises)
        return 4;
    if (keep->single_precision) {
        if (input && bytes == 2 && op->keeps_inputs) {
            op->kept_bytes += 4 * input->elements;
            op->keeps_inputs = false;
        }
        return 4;
    }
    return bytes;
}

/* nn.MultiheadAttention: packed projections, their copy in another layout, and the result in two.
 */
static void add_packed_attention(const struct builder *builder, struct extent extent, struct op *op)
{
    double bytes = builder->tape->autocast ? 2 : 4;
    op->kept_bytes += (3 + 2) * extent.elements * bytes;
    op->macs += 2 * extent.elements * builder->extents.sequence;
}

/* Whether a function between layers is applied to its output: behind a normalisation of a map,
 * where a token is widened. */
static bool is_activated(const struct builder *builder, const struct layer *layer,
    const struct op *op, struct extent extent)
{
    if (layer->kind == LAYER_NORM)
        return builder->tape->convolves;
    bool widens = op->inputs[0] != TAPE_NONE &&
                  extent.last > builder->tape->tensors[op->inputs[0]].last;
    return layer->kind == LAYER_LINEAR && !builder->tape->convolves && widens;
}

/* timm's normalisations activate what they made in place, where the gradient needs the result
 * alone. */
static struct saved_tensors keep_within(const struct builder *builder, size_t i)
{
    const struct layer *layers = builder->extents.model->layers;
    struct saved_tensors keep = saved_tensors_of(&layers[i]);
    size_t parent = i;
    if (!span_is(layers[i].type, "LeakyReLU") || layers[i].in_place == TOLD_NO)
        return keep;
    while (parent > 0 && layers[parent].depth >= layers[i].depth)
        parent--;
    bool within = layers[parent].kind == LAYER_NORM && layers[parent].depth < layers[i].depth;
    return within ? (struct saved_tensors){.output = true, .in_place = true} : keep;
}

/* Flat lists lack what nn.MultiheadAttention's functions use: the output's projection, and with
 * torchsummary all. */
static double unlisted_parameters(const struct builder *builder, size_t i, struct extent extent)
{
    const struct model *model = builder->extents.model;
    bool inside = i + 1 < model->n_layers && model->layers[i + 1].depth > model->layers[i].depth;
    double width = extent.last,
           missing = 4 * width * (width + 1) - (double)model->layers[i].parameters;
    return !inside && !model->layers[i].shared &&
                   span_is(model->layers[i].type, "MultiheadAttention") && missing > 0
               ? missing
               : 0;
}

/* A head without a weight of its own, from the width of an embedding to its rows, has the
 * embedding's. */
static void find_tie(
    const struct builder *builder, const struct layer *layer, struct extent extent, struct op *op)
{
    const struct tape *tape = builder->tape;
    if (layer->kind != LAYER_LINEAR || layer->shared || op->inputs[0] == TAPE_NONE)
        return;
    double elements = tape->tensors[op->inputs[0]].last * extent.last;
    for (size_t i = 0; i < tape->n_ops && (double)layer->parameters < elements; i++)
        if (tape->ops[i].kind == LAYER_EMBEDDING && tape->ops[i].weight == elements) {
            op->tied = elements;
            op->tied_to = (int)i;
            op->weight = 0;
            op->bias = (double)layer->parameters;
            return;
        }
}

/* cuDNN's reserve; where the stack is not to be seen, that of one layer in one direction. */
static void add_recurrence(const struct builder *builder, const struct layer *layer,
    const struct saved_tensors *keep, struct extent extent, struct op *op)
{
    struct recurrent recurrent;
    double bytes = builder->tape->autocast ? 2 : 4;
    double inputs = op->inputs[0] == TAPE_NONE ? 0 : builder->tape->tensors[op->inputs[0]].last;
    if (!recurrent_of(layer, layer->in_size > 0 ? (double)layer->in_size : inputs, extent, bytes,
            &recurrent)) {
        op->kept_bytes += keep->maps * bytes * extent.elements;
        return;
    }
    op->kept_bytes += recurrent.reserve;
    op->scratch = recurrent.scratch;
    op->sample_scratch = recurrent.sample_scratch;
}

static int add_layer(struct builder *builder, size_t i, struct extent extent)
{
    const struct layer *layer = &builder->extents.model->layers[i];
    struct saved_tensors keep = keep_within(builder, i);
    struct op op = {.kind = layer->kind,
        .layer = (int)i,
        .inputs = {TAPE_NONE, TAPE_NONE, TAPE_NONE},
        .output = TAPE_NONE,
        .keeps_inputs = keep.input,
        .keeps_output = keep.output};
    int r = layer_input_find(builder, layer, extent, &op);
    if (r < 0)
        return r;
    int bytes = apply_autocast(builder, &keep, &op);
    if (layer->kind == LAYER_RECURRENT)
        add_recurrence(builder, layer, &keep, extent, &op);
    else
        op.kept_bytes += (keep.bytes + keep.maps * bytes) * extent.elements;
    if (builder->calls_activations && is_activated(builder, layer, &op, extent))
        op.keeps_output = true;
    op.in_place = keep.in_place && op.inputs[0] != TAPE_NONE;
    if (!layer->shared)
        split_parameters(layer, extent, &op);
    find_tie(builder, layer, extent, &op);
    op.macs = macs_of(layer, extent, &op);
    if (layer->kind == LAYER_ATTENTION)
        add_packed_attention(builder, extent, &op);
    builder->tape->loose_parameters += unlisted_parameters(builder, i, extent);
    op.output = builder_tensor(builder, extent, bytes);
    if (op.output < 0)
        return op.output;
    builder->all_elements += extent.elements;
    if (layer->kind == LAYER_OTHER) {
        builder->unknown_elements += extent.elements;
        if (builder->tape->doubts.unknown_layer == TAPE_NONE)
            builder->tape->doubts.unknown_layer = (int)i;
    }
    r = builder_op(builder, &op);
    return r == 0 && layer->kind == LAYER_LINEAR ? attention_leave(builder, layer, &op) : r;
}

/* A block's own numbers, one or two per channel, scale what its branches made: the branches'
 * results are kept. */
static int scale_branches(struct builder *builder, const struct layer *block)
{
    struct extent now = builder_extent(builder, builder->current);
    double widths[2] = {now.first, now.last}, scales = 0;
    for (int i = 0; i < 2; i++)
        if ((double)block->parameters == widths[i] || (double)block->parameters == 2 * widths[i])
            scales = (double)block->parameters / widths[i];
    if (scales == 0)
        return 0;
    struct op op = {.kind = LAYER_MERGE,
        .layer = TAPE_NONE,
        .inputs = {builder->current, TAPE_NONE, TAPE_NONE},
        .keeps_inputs = true};
    op.kept_bytes = (scales - 1) * now.elements *
                    builder->tape->tensors[builder->current].element_bytes;
    op.output = builder_tensor(builder, now, 4);
    return op.output < 0 ? op.output : builder_op(builder, &op);
}

static bool ends(struct span s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.size >= n && memcmp(s.at + s.size - n, suffix, n) == 0;
}

/*
 * What a residual block adds to what it was given is a new map where the branch's result is kept by
 * what made it. An activation of the block's own follows the sum.
 */
static bool sums(
    const struct builder *builder, const struct open_block *open, const struct layer *block)
{
    const struct op *last = &builder->tape->ops[builder->tape->n_ops - 1];
    bool residual = ends(block->type, "Block") || ends(block->type, "Bottleneck");
    bool within = last->layer != TAPE_NONE &&
                  builder->extents.model->layers[last->layer].depth > block->depth + 1;
    return residual && within && last->keeps_output && last->output == builder->current &&
           open->entry != builder->current;
}

static int close_equal_block(
    struct builder *builder, const struct open_block *open, const struct layer *block)
{
    if (ends(block->type, "GatingUnit")) {
        int gated = builder_merge(
            builder, builder->current, TAPE_NONE, true, builder_extent(builder, builder->current));
        return gated < 0 ? gated : 0;
    }
    bool as_given = open->entry != TAPE_NONE &&
                    builder_extent(builder, open->entry).elements ==
                        builder_extent(builder, builder->current).elements;
    int r = block->parameters > 0 && as_given ? scale_branches(builder, block) : 0;
    if (r < 0 || !as_given || !sums(builder, open, block))
        return r;
    r = builder_merge(
        builder, builder->current, open->entry, false, builder_extent(builder, builder->current));
    return r < 0 ? r : 0;
}

/* As many channels on more places (not one, which is a gate): maps are enlarged by interpolation,
 * which autocast leaves in 32 bit. */
static bool is_resized(struct extent now, struct extent extent)
{
    return extent.first == now.first && extent.elements > now.elements && now.elements > now.first;
}

/* A block that puts out another size than its last layer has put something together, or scaled what
 * it was given. */
static int close_block(struct builder *builder, const struct open_block *open)
{
    const struct layer *block = &builder->extents.model->layers[open->layer];
    if (builder->current == TAPE_NONE || !block->activations.known || block->rank < 2)
        return 0;
    struct extent now = builder_extent(builder, builder->current);
    double elements = (double)block->activations.value;
    if (builder->extents.sequence != builder->extents.shown_sequence)
        return 0;
    if (elements == now.elements)
        return close_equal_block(builder, open, block);
    if (block->rank < 3)
        return 0;
    struct extent extent = {
        elements, (double)block->shape[0], (double)block->shape[block->rank - 1]};
    bool scales = open->entry != TAPE_NONE && extent_is_scale_of(now, extent) &&
                  builder_extent(builder, open->entry).elements == elements;
    int r = scales ? builder_merge(builder, open->entry, builder->current, true, extent)
                   : builder_merge(builder, builder->current, TAPE_NONE, false, extent);
    if (r >= 0 && is_resized(now, extent))
        builder->tape->tensors[r].element_bytes = 4;
    return r < 0 ? r : 0;
}

/*
 * Printed modules list an activation behind both layers around it ("fc1, fc2, act"). The index of
 * one that belongs in front of linear layer `i`; 0: none.
 */
static size_t activation_before(const struct builder *builder, size_t i)
{
    const struct model *model = builder->extents.model;
    const struct layer *layer = &model->layers[i];
    const struct tape *tape = builder->tape;
    if (!builder->extents.from_arguments || tape->n_ops == 0 ||
        tape->ops[tape->n_ops - 1].kind != LAYER_LINEAR)
        return 0;
    double width = builder_extent(builder, builder->current).last;
    bool narrows = layer->in_size > 0
                       ? (double)layer->in_size == width && layer->out_size < layer->in_size
                       : (double)layer->parameters < width * width;
    for (size_t k = i + 1; narrows && k < model->n_layers && k < i + 4; k++) {
        if (model->layers[k].depth != layer->depth || !model->layers[k].leaf)
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
                               ? (struct extent){0}
                               : builder_extent(builder, builder->current);
    struct extent extent = extent_of(&builder->extents, i, before);
    builder->done[i] = true;
    if (layer->kind == LAYER_NORM && layer->rank == 1 && before.elements > before.last &&
        extent.elements == before.last)
        extent = before; /* of tokens that were made one long batch */
    if (extent.elements == 0) {
        builder->tape->loose_parameters += layer->shared ? 0 : (double)layer->parameters;
        builder->tape->doubts.unshaped_share += !within_attention(builder, i);
        return 0;
    }
    return add_layer(builder, i, extent);
}

static int take_in_order(struct builder *builder, size_t i)
{
    size_t first = builder->extents.model->layers[i].kind == LAYER_LINEAR
                       ? activation_before(builder, i)
                       : 0;
    int r = first ? take_layer(builder, first) : 0;
    return r < 0 ? r : take_layer(builder, i);
}

/* What a block puts out is what others see of it, as a rule. */
static void hide_insides(struct builder *builder, const struct open_block *open)
{
    for (int t = open->first; t < (int)builder->tape->n_tensors; t++)
        builder->hidden[t] |= t != builder->current;
}

/* Blocks of a tree end where a layer stands no deeper than they. */
static int close_blocks(
    struct builder *builder, struct open_block open[static MODEL_DEPTH_MAX], int *n, int depth)
{
    const struct layer *layers = builder->extents.model->layers;
    int r = 0;
    while (r == 0 && *n > 0 && layers[open[*n - 1].layer].depth >= depth) {
        r = close_block(builder, &open[--*n]);
        hide_insides(builder, &open[*n]);
    }
    return r;
}

static bool skips(const struct builder *builder, const struct layer *layer)
{
    if (layer->kind == LAYER_DROPOUT && layer->rank > 1)
        return layer->drops == TOLD_NO || (layer->drops == NOT_TOLD && !builder->drops_within);
    return layer->kind == LAYER_RESHAPE || layer->kind == LAYER_INPUT;
}

static int take_all(struct builder *builder)
{
    const struct model *model = builder->extents.model;
    bool tree = model->format != SUMMARY_TORCHSUMMARY;
    struct open_block open[MODEL_DEPTH_MAX];
    int n = 0, r = 0;
    for (size_t i = 0; r == 0 && i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        r = close_blocks(builder, open, &n, layer->depth);
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
        if (layer->leaf && !skips(builder, layer))
            r = take_in_order(builder, i);
        else if (layer->leaf)
            r = attention_scores(builder, layer);
        else if (!layer->leaf && tree && n < MODEL_DEPTH_MAX)
            open[n++] = (struct open_block){
                (int)i, builder->current, (int)builder->tape->n_tensors};
        else if (!layer->leaf)
            r = close_block(builder, &(struct open_block){(int)i, TAPE_NONE, 0});
        if (!layer->leaf)
            builder->tape->loose_parameters += (double)layer->parameters;
    }
    return r < 0 ? r : close_blocks(builder, open, &n, 0);
}

/*
 * Hugging Face's generators compute their own loss from logits that they made 32 bit, or added
 * something to that is; their masked models, and networks of one's own, hand cross-entropy what
 * they have. A flat list does not tell.
 */
static bool raises_logits(const struct model *model)
{
    static const char *const generators[] = {
        "ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
    if (model->n_layers == 0 || model->layers[0].leaf)
        return true;
    for (size_t i = 0; i < sizeof generators / sizeof generators[0]; i++)
        if (ends(model->layers[0].type, generators[i]))
            return true;
    return false;
}

static void sum_up(struct builder *builder)
{
    struct tape *tape = builder->tape;
    const struct model *model = builder->extents.model;
    tape->parameters = (double)model->parameters;
    tape->sequence = builder->extents.sequence;
    tape->raises_logits = raises_logits(model);
    tape->doubts.unshaped_share /= (double)(model->n_leaves ? model->n_leaves : 1);
    if (builder->all_elements > 0)
        tape->doubts.unknown_share = builder->unknown_elements / builder->all_elements;
    if (model->parameters > 0)
        tape->doubts.hidden_share = (double)model->parameters_hidden / (double)model->parameters;
}

/* A network without a layer for its activations calls them as functions, which keep their results.
 */
static bool calls_activations(const struct model *model)
{
    bool deep = false;
    for (size_t i = 0; i < model->n_layers; i++) {
        if (model->layers[i].kind == LAYER_ACTIVATION)
            return false;
        deep |= model->layers[i].kind == LAYER_CONV || model->layers[i].kind == LAYER_ATTENTION;
    }
    return deep;
}

/*
 * Published networks over images that normalise tokens train without dropout between their layers
 * (timm's and torchvision's transformers: a probability of 0), those over words with it. Some of
 * Hugging Face's have none either.
 */
static bool drops_within(const struct model *model)
{
    static const char *const without[] = {"Albert", "Bloom", "GPTNeo"};
    bool image = false, tokens = false;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        image |= layer->kind == LAYER_CONV && layer->rank == 3;
        tokens |= (layer->kind == LAYER_LINEAR && layer->rank >= 2) ||
                  span_starts(layer->type, "LayerNorm") || span_starts(layer->type, "GroupNorm");
    }
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        if (model->n_layers > 0 && span_starts(model->layers[0].type, without[i]))
            return false;
    return !(image && tokens);
}

int tape_build(const struct estimate_request *request, struct fault *fault, struct tape *ret_tape,
    const char **ret_why)
{
    bool autocast = precision_is_autocast(request->precision);
    struct tape tape = {.batch = (double)estimate_batch(request).value,
        .autocast = autocast,
        .doubts = {.unknown_layer = TAPE_NONE}};
    struct builder builder = {.tape = &tape, .current = TAPE_NONE, .fault = fault};
    int r = extent_context_init(request, &builder.extents, ret_why);
    if (r != 0)
        return r;
    builder.calls_activations = calls_activations(request->model);
    builder.drops_within = drops_within(request->model);
    builder.done = calloc(request->model->n_layers + 1, sizeof *builder.done);
    r = builder.done ? take_all(&builder) : fault_set(fault, ENOMEM, "out of memory");
    sum_up(&builder);
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
    *tape = (struct tape){0};
}
