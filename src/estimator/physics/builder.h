/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tape under construction: the state that is shared by the files that derive operations from
 * layers. tape_build.c goes through the layers, layer_input.c finds the tensor that a layer is
 * applied to, attention.c adds the attention between projections; all three append through
 * builder.c, which calls none of them.
 */
#ifndef COLLOC_PHYSICS_BUILDER_H
#define COLLOC_PHYSICS_BUILDER_H

#include "estimator/physics/extent.h"
#include "estimator/physics/tape.h"

/* The innermost module around a layer that is attention by its type's name. */
struct attention_scope {
    bool open, done;
    bool scores;          /* scores are stored, not computed within a fused kernel */
    bool channels;        /* scores are between channels */
    bool biased;          /* scores have learned biases and are stored */
    double awaited_width; /* of the result of products that are to be appended; 0: none */
    int depth;
    int source;     /* the input of the projections */
    int project[3]; /* query, key and value, so far */
    int n;
};

/* The block whose branches run beside each other, while the layer is in one of them. */
struct branch_scope {
    size_t first, end; /* layers of the branches, and the index after them; 0: none */
    int depth;         /* of a branch */
    int entry;         /* what all of them read; TAPE_NONE: the data */
    int sum;           /* of the branches that have ended */
};

/* A layer with an adapter (adapters.c), while a layer of it is the current one. */
struct adapter_scope {
    size_t base;        /* the layer itself */
    size_t second, end; /* the adapter's first layer, and the index after its last; 0: none */
    int entry;          /* what both read */
    int base_output;    /* TAPE_NONE: not there yet */
};

/* How a map is cut for the layers around the current one. */
struct partition {
    double parts;  /* 0: not cut */
    double tokens; /* of a part */
};

struct builder {
    struct tape *tape;
    struct extent_context extents;
    int current;    /* the tensor made last; TAPE_NONE before the first layer */
    bool *consumed; /* by tensor: an operation reads it */
    bool *hidden;   /* by tensor: made in a block that has ended, and not that block's output */
    bool *done;     /* by layer: part of an operation already */
    struct {
        int *ops;
        size_t n, capacity;
    } embeddings; /* whose weight a later layer may share */
    struct attention_scope scope;
    struct branch_scope branches;
    struct adapter_scope adapter;
    int adapted; /* the result of the last layer with an adapter; TAPE_NONE */
    struct partition partition;
    bool calls_activations;
    bool drops_within; /* dropout between the layers has an effect */
    double unknown_elements, all_elements;
    struct fault *fault;
};

/* Tests whether the current layer is in a layer with an adapter, whose result is not there yet. */
static inline bool builder_is_adapting(const struct builder *builder)
{
    return builder->adapter.end > 0;
}

/* Tests whether the current layer is of the adapter itself, not the one beside it. */
static inline bool builder_is_in_adapter(const struct builder *builder)
{
    return builder_is_adapting(builder) && builder->adapter.base_output != TAPE_NONE;
}

/*
 * Appends a tensor.
 * extent: elements per sample, and the first and the last dimension.
 * element_bytes: size of one element.
 * Returns its index, or a fault: -ENOMEM, or -ERANGE when it is beyond any memory at this batch.
 */
int builder_tensor(struct builder *builder, struct extent extent, int element_bytes);

/*
 * Appends an operation; its inputs become consumed and its output the current tensor.
 * op: copied.
 * Returns 0, or -ENOMEM with a fault.
 */
int builder_op(struct builder *builder, const struct op *op);

/*
 * Appends an operation that the text does not show: an addition, a product or a concatenation.
 * first, second: the tensors it reads, or TAPE_NONE.
 * keeps: autograd keeps them until the backward pass.
 * extent: of its output.
 * Returns the index of its output, or a fault as builder_tensor.
 */
int builder_merge(struct builder *builder, int first, int second, bool keeps, struct extent extent);

/* Returns the size of `tensor`, an index that is not TAPE_NONE. */
struct extent builder_extent(const struct builder *builder, int tensor);

/* Frees what only building needs; the tape stays. */
void builder_fini(struct builder *builder);

#endif
