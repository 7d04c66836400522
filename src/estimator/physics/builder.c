/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tape under construction: the functions that append a tensor or an operation.
 *
 * All files that derive operations from layers (tape_build.c, layer_input.c, attention.c) append
 * through these functions. So three things are true of every tape: a tensor that some operation
 * reads is marked as consumed, the tensor made last is `current`, and no size is larger than a
 * double counts exactly.
 */
#include "estimator/physics/builder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

/* Elements of one tensor at the whole batch. Chosen: 4 PB of fp32 is beyond any device, and sums of
 * such sizes stay below 2^53, up to which a double counts exactly. */
static const double elements_most = 1e15;

/* Chosen: tensors and operations of the first allocation; most networks need a few more. */
enum { CAPACITY_FIRST = 256 };

static int out_of_memory(struct builder *builder)
{
    return fault_set(builder->fault, ENOMEM, "out of memory");
}

struct extent builder_extent(const struct builder *builder, int tensor)
{
    const struct tensor *t = &builder->tape->tensors[tensor];
    return (struct extent){.elements = t->elements, .first = t->first, .last = t->last};
}

static int grow_tensors(struct builder *builder)
{
    struct tape *tape = builder->tape;
    size_t capacity = tape->capacity_tensors ? 2 * tape->capacity_tensors : CAPACITY_FIRST;
    struct tensor *tensors = reallocarray(tape->tensors, capacity, sizeof *tensors);
    if (!tensors)
        return out_of_memory(builder);
    tape->tensors = tensors;
    bool *consumed = reallocarray(builder->consumed, capacity, sizeof *consumed);
    if (!consumed)
        return out_of_memory(builder);
    builder->consumed = consumed;
    bool *hidden = reallocarray(builder->hidden, capacity, sizeof *hidden);
    if (!hidden)
        return out_of_memory(builder);
    builder->hidden = hidden;
    tape->capacity_tensors = capacity;
    return 0;
}

int builder_tensor(struct builder *builder, struct extent extent, int element_bytes)
{
    struct tape *tape = builder->tape;
    int r = tape->n_tensors == tape->capacity_tensors ? grow_tensors(builder) : 0;
    if (r < 0)
        return r;
    if (!(extent.elements * tape->batch <= elements_most))
        return fault_set(builder->fault, ERANGE,
            "a batch of %.0f makes a tensor of %.3g elements: beyond any memory", tape->batch,
            extent.elements * tape->batch);
    builder->consumed[tape->n_tensors] = builder->hidden[tape->n_tensors] = false;
    tape->tensors[tape->n_tensors] = (struct tensor){.elements = extent.elements,
        .first = extent.first,
        .last = extent.last,
        .element_bytes = element_bytes};
    return (int)tape->n_tensors++;
}

int builder_op(struct builder *builder, const struct op *op)
{
    struct tape *tape = builder->tape;
    if (tape->n_ops == tape->capacity_ops) {
        size_t capacity = tape->capacity_ops ? 2 * tape->capacity_ops : CAPACITY_FIRST;
        struct op *ops = reallocarray(tape->ops, capacity, sizeof *ops);
        if (!ops)
            return out_of_memory(builder);
        tape->ops = ops;
        tape->capacity_ops = capacity;
    }
    tape->ops[tape->n_ops] = *op;
    if (op->tied == 0)
        tape->ops[tape->n_ops].tied_to = TAPE_NONE;
    if (op->kind == LAYER_EMBEDDING && ARRAY_APPEND(builder->embeddings.ops, builder->embeddings.n,
                                           builder->embeddings.capacity, (int)tape->n_ops) < 0)
        return out_of_memory(builder);
    tape->n_ops++;
    tape->convolves |= op->kind == LAYER_CONV;
    tape->multiplies |= op->kind == LAYER_LINEAR || op->kind == LAYER_ATTENTION ||
                        op->kind == LAYER_RECURRENT;
    for (int i = 0; i < OP_INPUTS; i++)
        if (op->inputs[i] != TAPE_NONE)
            builder->consumed[op->inputs[i]] = true;
    if (op->output != TAPE_NONE)
        builder->current = op->output;
    return 0;
}

int builder_merge(struct builder *builder, int first, int second, bool keeps, struct extent extent)
{
    struct op op = {.kind = LAYER_MERGE,
        .layer = TAPE_NONE,
        .inputs = {first, second, TAPE_NONE},
        .keeps_inputs = keeps};
    int bytes = first == TAPE_NONE ? 4 : builder->tape->tensors[first].element_bytes;
    op.output = builder_tensor(builder, extent, bytes);
    if (op.output < 0)
        return op.output;
    builder->tape->doubts.n_merges++;
    int r = builder_op(builder, &op);
    return r < 0 ? r : op.output;
}

void builder_fini(struct builder *builder)
{
    free(builder->embeddings.ops);
    free(builder->done);
    free(builder->consumed);
    free(builder->hidden);
}
