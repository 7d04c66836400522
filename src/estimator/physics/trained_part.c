/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network of which only a part is trained. Weights that are not have no gradient and no optimizer
 * states. Three rules follow from autograd (a tensor requires a gradient if an input or a weight of
 * the operation that makes it does):
 *
 *   1. Before the first trained layer nothing is kept and no gradient is computed.
 *   2. After it, gradients flow through all layers. A linear layer whose weight is not trained does
 *      not keep its input: that is needed for the weight's gradient alone.
 *   3. Other operations keep what they keep when all is trained. So does a convolution: one
 *      function computes its gradients and saves its input for all of them (arXiv:2404.12406; seen
 *      in PyTorch 1.13, findings/frozen-convolution.sh).
 *
 * Example: of frozen Linear(1024, 1024), ReLU, trained Linear(1024, 10) only the second linear
 * layer keeps a tensor, its input.
 *
 * Quantised weights are stored in 4 or 8 bit with constants, and turned into 16 (or 32) bit for
 * each product, in the forward and again in the backward pass (bitsandbytes' MatMul4Bit). 4 bit
 * have a 32-bit constant for each block of 64 weights (arXiv:2305.14314), 8 bit one for each row.
 * The other weights of such a network are loaded in 16 bit (transformers' from_pretrained with a
 * quantisation configuration).
 */
#include "estimator/physics/trained_part.h"

enum { BLOCK_WEIGHTS = 64, CONSTANT_BYTES = 4, BITS_OF_BYTE = 8, BITS_WITH_BLOCKS = 4 };

static double quantised_bytes(const struct layer *layer)
{
    bool has_rows = layer->weight_bits > BITS_WITH_BLOCKS && layer->in_size != LAYER_SIZE_UNKNOWN;
    double sharing = has_rows ? (double)layer->in_size : BLOCK_WEIGHTS;
    return (double)layer->weight_bits / BITS_OF_BYTE + CONSTANT_BYTES / sharing;
}

static double stored_bytes(const struct builder *builder, const struct layer *layer)
{
    bool is_frozen = layer->trainable == TRISTATE_NO;
    if (layer->weight_bits)
        return quantised_bytes(layer);
    if (builder->tape->half_weights)
        return layer->in_adapter ? SINGLE_BYTES : HALF_BYTES;
    return is_frozen && builder->extents.model->is_quantised ? HALF_BYTES : SINGLE_BYTES;
}

void trained_part_set_storage(
    const struct builder *builder, const struct layer *layer, struct op *op)
{
    op->weight_bytes = stored_bytes(builder, layer);
    if (layer->weight_bits)
        op->unpacked = op->weight * (tape_is_half(builder->tape) ? HALF_BYTES : SINGLE_BYTES);
}

void trained_part_add_loose(struct builder *builder, const struct layer *layer, double parameters)
{
    struct tape *tape = builder->tape;
    if (layer->trainable != TRISTATE_NO) {
        tape->loose_parameters += parameters;
        return;
    }
    tape->loose_frozen += parameters;
    tape->loose_frozen_bytes += parameters * stored_bytes(builder, layer);
}

/* Does the operation's output require a gradient? */
static bool is_reached(const struct tape *tape, const struct op *op)
{
    bool is = op_is_trained(op) || (tape->gradients_reach_all && op->kind != LAYER_INPUT);
    for (int i = 0; i < OP_INPUTS; i++)
        if (op->inputs[i] != TAPE_NONE)
            is |= !tape->tensors[op->inputs[i]].needs_no_gradient;
    return is;
}

static bool is_all_trained(const struct tape *tape)
{
    for (size_t i = 0; i < tape->n_ops; i++)
        if (tape->ops[i].frozen)
            return false;
    return true;
}

void trained_part_mark(struct tape *tape)
{
    if (is_all_trained(tape))
        return;
    for (size_t i = 0; i < tape->n_tensors; i++)
        tape->tensors[i].needs_no_gradient = true;
    for (size_t i = 0; i < tape->n_ops; i++) {
        struct op *op = &tape->ops[i];
        bool is = is_reached(tape, op);
        if (op->output != TAPE_NONE)
            tape->tensors[op->output].needs_no_gradient = !is;
        op->keeps_inputs &= is && !op_needs_no_input(op);
        op->keeps_output &= is;
        op->kept_bytes = is ? op->kept_bytes : 0;
    }
}

double tape_trained_parameters(const struct tape *tape)
{
    double trained = tape->parameters - tape->loose_frozen;
    for (size_t i = 0; i < tape->n_ops; i++)
        if (tape->ops[i].frozen)
            trained -= tape->ops[i].weight + tape->ops[i].bias;
    return trained > 0 ? trained : 0;
}

double tape_trained_bytes(const struct tape *tape)
{
    double each = tape_weight_bytes_each(tape), bytes = tape_trained_parameters(tape) * each;
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        bytes += op->frozen ? 0 : (op->weight + op->bias) * (op_weight_bytes(op) - each);
    }
    return bytes;
}

double tape_weight_bytes(const struct tape *tape)
{
    double each = tape_weight_bytes_each(tape),
           bytes = (tape->parameters - tape->loose_frozen) * each + tape->loose_frozen_bytes;
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        bytes += (op->weight + op->bias) * (op_weight_bytes(op) - each);
    }
    return bytes;
}
