/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes an operation of one layer: its input, its parameters, the tensors that autograd keeps, and
 * what autocast changes.
 *
 * saved_tensors.c says what autograd keeps of a layer of its type in 32 bit. This file adds the
 * facts that depend on the layer's place: its input (layer_input.c); the split of its parameters
 * into weight and bias, since the allocator rounds each by itself; a weight that it shares with an
 * embedding; the casts of torch.autocast (docs of torch.amp: which operations run in 16 and in 32
 * bit); the reserve of a recurrent layer.
 *
 * Example: under autocast Linear(512, 512) whose input is a 32-bit tensor keeps the 16-bit copy of
 * it, 1 KiB for each token, instead of the input, and puts out 16 bit.
 */
#include "estimator/physics/layer_op.h"

#include "estimator/physics/attention.h"
#include "estimator/physics/layer_input.h"
#include "estimator/physics/library_rules.h"
#include "estimator/physics/recurrent.h"
#include "estimator/physics/saved_tensors.h"
#include "estimator/physics/trained_part.h"

/* nn.MultiheadAttention (torch.nn.functional.multi_head_attention_forward): query, key and value
 * are copied into another layout, and the result is there in two. */
enum { PACKED_PROJECTIONS = 3, PACKED_RESULTS = 2 };

/* Splits weight and bias, since the allocator rounds each. */
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
        const double in = layer->in_size != LAYER_SIZE_UNKNOWN ? (double)layer->in_size : 0;
        bool bias = in > 0 && layer->kind == LAYER_LINEAR ? without == in * outputs
                                                          : (int64_t)(all / outputs) % 2 == 1;
        op->weight = bias ? without : all;
        op->bias = bias ? outputs : 0;
    }
}

/* Returns the multiply-adds per sample: each weight is used once at each place of the output. */
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

/* Applies torch.autocast: the type of the output, and casts that are kept. */
static int apply_autocast(
    const struct builder *builder, const struct saved_tensors *keep, struct op *op)
{
    const struct tape *tape = builder->tape;
    const struct tensor *input = op->inputs[0] == TAPE_NONE ? NULL : &tape->tensors[op->inputs[0]];
    int bytes = input ? input->element_bytes : SINGLE_BYTES;
    if (!tape->autocast)
        return SINGLE_BYTES;
    if (keep->half_precision) {
        if (input && bytes == SINGLE_BYTES &&
            !op_needs_no_input(op)) { /* the 16-bit copy is kept, not the input */
            op->kept_bytes += HALF_BYTES * input->elements;
            op->keeps_inputs = false;
        }
        return HALF_BYTES;
    }
    if (keep->promotes || keep->raises)
        return SINGLE_BYTES;
    if (keep->single_precision) {
        if (input && bytes == HALF_BYTES && op->keeps_inputs) {
            op->kept_bytes += SINGLE_BYTES * input->elements;
            op->keeps_inputs = false;
        }
        return SINGLE_BYTES;
    }
    return bytes;
}

/*
 * Applies weights in 16 bit: the type of the output, and casts that are kept. A batch of 32 bit is
 * cast first. A normalisation written in Python keeps its input in 32 bit, and its result before
 * the weight in 16 bit if that is trained. Adapters are in 32 bit (PEFT's autocast_adapter_dtype),
 * and so are their inputs (adapters.c).
 */
static int apply_half_weights(
    const struct builder *builder, struct saved_tensors *keep, struct op *op)
{
    const struct tensor *input = op->inputs[0] == TAPE_NONE
                                     ? NULL
                                     : &builder->tape->tensors[op->inputs[0]];
    if (builder_is_in_adapter(builder))
        return SINGLE_BYTES;
    if (input && keep->raised) {
        op->kept_bytes += (SINGLE_BYTES + (op->frozen ? 0 : HALF_BYTES)) * input->elements;
        op->kept_map = SINGLE_BYTES * input->elements;
        op->keeps_inputs = false;
        keep->maps = 0;
    } else if (input && input->is_data && op->keeps_inputs) {
        op->kept_bytes += HALF_BYTES * input->elements;
        op->keeps_inputs = false;
    }
    return HALF_BYTES;
}

/* nn.MultiheadAttention: packed projections, their copy in another layout, and the result in two.
 */
static void add_packed_attention(const struct builder *builder, struct extent extent, struct op *op)
{
    double bytes = tape_is_half(builder->tape) ? HALF_BYTES : SINGLE_BYTES;
    op->kept_bytes += (PACKED_PROJECTIONS + PACKED_RESULTS) * extent.elements * bytes;
    op->kept_map = extent.elements * bytes;
    op->macs += 2 * extent.elements * builder->extents.sequence;
}

/* Tests whether the network calls an activation as a function on the layer's output: after the
 * normalisation of a map, and after the layer that widens tokens. */
static bool is_activated(const struct builder *builder, const struct layer *layer,
    const struct op *op, struct extent extent)
{
    if (layer->kind == LAYER_NORM)
        return builder->tape->convolves;
    bool widens = op->inputs[0] != TAPE_NONE &&
                  extent.last > builder->tape->tensors[op->inputs[0]].last;
    return layer->kind == LAYER_LINEAR && !builder->tape->convolves && widens;
}

/* timm's normalisations apply their activation in place, if its gradient needs only the result. */
static struct saved_tensors keep_within(const struct builder *builder, size_t i)
{
    const struct layer *layers = builder->extents.model->layers;
    struct saved_tensors keep = saved_tensors_of(&layers[i]);
    size_t parent = i;
    if (!span_is(layers[i].type, "LeakyReLU") || layers[i].in_place == TRISTATE_NO)
        return keep;
    while (parent > 0 && layers[parent].depth >= layers[i].depth)
        parent--;
    bool within = layers[parent].kind == LAYER_NORM && layers[parent].depth < layers[i].depth;
    return within ? (struct saved_tensors){.output = true, .in_place = true} : keep;
}

/* Flat lists lack parameters that the functions of nn.MultiheadAttention use: those of the output's
 * projection, and in torchsummary's lists all. */
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

/* A linear layer from the width of an embedding to its number of rows, without parameters in the
 * text, shares the embedding's weight. */
static void find_tie(
    const struct builder *builder, const struct layer *layer, struct extent extent, struct op *op)
{
    const struct tape *tape = builder->tape;
    if (layer->kind != LAYER_LINEAR || layer->shared || op->inputs[0] == TAPE_NONE)
        return;
    double elements = tape->tensors[op->inputs[0]].last * extent.last;
    for (size_t i = 0; i < builder->embeddings.n && (double)layer->parameters < elements; i++)
        if (tape->ops[builder->embeddings.ops[i]].weight == elements) {
            op->tied = elements;
            op->tied_to = builder->embeddings.ops[i];
            op->weight = 0;
            op->bias = (double)layer->parameters;
            return;
        }
}

/* Adds cuDNN's reserve: if the stack cannot be derived, that of one layer in one direction. */
static void add_recurrence(const struct builder *builder, const struct layer *layer,
    const struct saved_tensors *keep, struct extent extent, struct op *op)
{
    struct recurrent recurrent;
    double bytes = tape_is_half(builder->tape) ? HALF_BYTES : SINGLE_BYTES;
    double inputs = op->inputs[0] == TAPE_NONE ? 0 : builder->tape->tensors[op->inputs[0]].last;
    if (!recurrent_of(layer, layer->in_size != LAYER_SIZE_UNKNOWN ? (double)layer->in_size : inputs,
            extent, bytes, &recurrent)) {
        op->kept_bytes += keep->maps * bytes * extent.elements;
        return;
    }
    op->kept_bytes += recurrent.reserve;
    op->scratch = recurrent.scratch;
    op->sample_scratch = recurrent.sample_scratch;
}

static void keep_maps(
    const struct saved_tensors *keep, int bytes, struct extent extent, struct op *op)
{
    op->kept_bytes += (keep->bytes + keep->maps * bytes) * extent.elements;
    if (keep->maps > 0)
        op->kept_map = bytes * extent.elements;
}

int layer_op_append(struct builder *builder, size_t i, struct extent extent)
{
    const struct layer *layer = &builder->extents.model->layers[i];
    struct saved_tensors keep = keep_within(builder, i);
    struct op op = {.kind = layer->kind,
        .layer = (int)i,
        .inputs = {TAPE_NONE, TAPE_NONE, TAPE_NONE},
        .output = TAPE_NONE,
        .keeps_inputs = keep.input,
        .keeps_output = keep.output,
        .frozen = layer->trainable == TRISTATE_NO};
    int r = layer_input_find(builder, layer, extent, &op);
    if (r < 0)
        return r;
    int bytes = builder->tape->half_weights ? apply_half_weights(builder, &keep, &op)
                                            : apply_autocast(builder, &keep, &op);
    if (layer->kind == LAYER_RECURRENT)
        add_recurrence(builder, layer, &keep, extent, &op);
    else
        keep_maps(&keep, bytes, extent, &op);
    if (builder->calls_activations && is_activated(builder, layer, &op, extent))
        op.keeps_output = true;
    op.standardizes = library_standardizes_weight(layer->type);
    op.in_place = keep.in_place && op.inputs[0] != TAPE_NONE;
    if (!layer->shared)
        split_parameters(layer, extent, &op);
    find_tie(builder, layer, extent, &op);
    trained_part_set_storage(builder, layer, &op);
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
    bool is_projection = layer->kind == LAYER_LINEAR && !builder_is_adapting(builder);
    return r == 0 && is_projection ? attention_leave(builder, layer, &op) : r;
}
