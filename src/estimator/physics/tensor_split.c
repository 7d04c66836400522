/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides products as Megatron-LM does (arXiv:1909.08053), and PyTorch's parallelize_module with
 * ColwiseParallel and RowwiseParallel. Within a repeated block a product whose input is whole is
 * divided by columns, so each process has a part of its output; a product whose input is such a
 * part is divided by rows, and the processes add their outputs, which are whole again:
 *
 *     whole -> query, key, value (columns) -> part -> attention -> part -> output (rows) -> whole
 *     whole -> up (columns) -> part -> activation -> part -> down (rows) -> whole
 *
 * What follows from the dataflow: additions to the whole stream and normalisations stay whole, as
 * do embeddings and the head, which are outside of the blocks. Convolutions are not divided. A text
 * without blocks is divided throughout, but for its last product.
 */
#include "estimator/physics/tensor_split.h"

#include <errno.h>
#include <stdlib.h>

#include "estimator/physics/block_range.h"

struct split {
    struct tape *tape;
    struct block_ranges ranges;
    size_t last_product;
    bool *parts; /* by tensor: it is a part */
    double degree, divided;
};

static bool is_product(const struct op *op)
{
    return op->kind == LAYER_LINEAR || op->kind == LAYER_ATTENTION;
}

static bool is_within(const struct split *split, size_t i)
{
    return split->ranges.n > 0 ? block_ranges_at(&split->ranges, i) != NULL
                               : i != split->last_product;
}

/* Are all its inputs parts? */
static bool reads_parts(const struct split *split, const struct op *op)
{
    bool any = false, all = true;
    for (int k = 0; k < OP_INPUTS; k++)
        if (op->inputs[k] != TAPE_NONE) {
            any = true;
            all &= split->parts[op->inputs[k]];
        }
    return any && all;
}

static void divide_weight(struct split *split, struct op *op, bool by_columns)
{
    split->divided += op->weight + (by_columns ? op->bias : 0);
    op->weight /= split->degree;
    if (by_columns)
        op->bias /= split->degree;
    op->macs /= split->degree;
}

static void divide_kept(const struct split *split, struct op *op)
{
    op->kept_bytes /= split->degree;
    op->kept_map /= split->degree;
}

/* Returns whether the operation's output is a part. An attention with weights has its own
 * projections before and after it. */
static bool divide_op(struct split *split, size_t i)
{
    struct op *op = &split->tape->ops[i];
    bool reads = reads_parts(split, op);
    if (!is_product(op) || !is_within(split, i))
        return reads;
    if (op->kind == LAYER_ATTENTION && op->weight == 0) {
        op->macs /= reads ? split->degree : 1;
        return reads;
    }
    divide_weight(split, op, !reads);
    if (op->kind == LAYER_ATTENTION)
        divide_kept(split, op);
    return op->kind == LAYER_LINEAR && !reads;
}

static void divide_output(struct split *split, struct op *op)
{
    struct tensor *output = &split->tape->tensors[op->output];
    if (!split->parts[op->output])
        output->elements /= split->degree;
    split->parts[op->output] = true;
    divide_kept(split, op);
    op->sample_scratch /= split->degree;
}

static void divide_all(struct split *split)
{
    struct tape *tape = split->tape;
    for (size_t i = 0; i < tape->n_ops; i++)
        if (tape->ops[i].kind == LAYER_LINEAR)
            split->last_product = i;
    for (size_t i = 0; i < tape->n_ops; i++)
        if (divide_op(split, i))
            divide_output(split, &tape->ops[i]);
    tape->parameters -= split->divided * (1 - 1 / split->degree);
}

int tensor_split(struct tape *tape, const struct model *model, int degree, double *ret_divided)
{
    struct split split = {.tape = tape, .degree = degree, .last_product = tape->n_ops};
    *ret_divided = 0;
    split.parts = calloc(tape->n_tensors + 1, sizeof *split.parts);
    if (!split.parts || block_ranges_find(tape, model, &split.ranges) < 0) {
        free(split.parts);
        return -ENOMEM;
    }
    divide_all(&split);
    *ret_divided = split.divided;
    block_ranges_fini(&split.ranges);
    free(split.parts);
    return 0;
}
