/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses output shapes as the forms print them, and removes the batch from them.
 *
 * The first dimension of the first shape is the batch: a number, or -1 or None where it is left
 * open. It is removed from every shape, so that a layer's shape is that of one sample. Shapes that
 * begin with another number are counted as odd: position embeddings have no batch, and many odd
 * shapes show that two prints were mixed.
 *
 * Example: "[32, 64, 56, 56]" as the first shape means batch 32 and 64 x 56 x 56 for each sample.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "model/format.h"

enum { DIM_OPEN = -1 }; /* -1, None and ?: the batch, or an unknown dimension */

/* The dimensions within one bracket. */
struct dims {
    int64_t at[MODEL_RANK_MAX + 2]; /* batch included */
    int n;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Removes one dimension from the front. Returns 0; 1: the text is no dimension; or a fault. */
static int take_dim(struct parser *parser, struct span *s, int64_t *ret_dim)
{
    size_t n = 0;
    while (n < s->size && is_digit(s->at[n]))
        n++;
    if (n) {
        int r = number_parse(span_first(*s, n), ret_dim);
        *s = span_skip(*s, n);
        return r < 0 ? parser_fault(
                           parser, ERANGE, "a dimension of the output shape is beyond 64 bits")
                     : 0;
    }
    static const char *const open[] = {"-1", "None", "?"};
    for (size_t i = 0; i < ARRAY_SIZE(open); i++) {
        if (!span_starts(*s, open[i]))
            continue;
        if (s->size > strlen(open[i]) && is_digit(s->at[strlen(open[i])]))
            break;
        *s = span_skip(*s, strlen(open[i]));
        *ret_dim = DIM_OPEN;
        return 0;
    }
    bool negative = s->size > 1 && s->at[0] == '-' && is_digit(s->at[1]);
    return negative ? parser_fault(parser, EINVAL, "a negative dimension in the output shape") : 1;
}

static void drop_dim(struct dims *dims, int i)
{
    memmove(&dims->at[i], &dims->at[i + 1], (size_t)(dims->n - i - 1) * sizeof dims->at[0]);
    dims->n--;
}

static bool has_open(const struct dims *dims)
{
    for (int i = 0; i < dims->n; i++)
        if (dims->at[i] == DIM_OPEN)
            return true;
    return false;
}

/*
 * Removes the batch from the dimensions. If it is a factor of none of them, the shape does not
 * change, and *ret_divide is the batch, by which the product has to be divided.
 */
static void take_out_batch(struct parser *parser, struct dims *dims, int64_t *ret_divide)
{
    struct count *batch = &parser->model->batch;
    *ret_divide = 1;
    if (!parser->batch_decided) {
        parser->batch_decided = true;
        batch->known = !has_open(dims);
        batch->value = batch->known ? dims->at[0] : 0;
    }
    parser->n_shapes++;
    if (dims->at[0] == DIM_OPEN || (batch->known && dims->at[0] == batch->value)) {
        parser->n_odd_shapes += batch->known && dims->at[0] == DIM_OPEN;
        drop_dim(dims, 0);
        return;
    }
    if (!batch->known) {
        parser->n_odd_shapes += dims->at[0] > 1 && !has_open(dims);
        return;
    }
    if (dims->at[0] % batch->value == 0) { /* the batch and another dimension, flattened into one */
        dims->at[0] /= batch->value;
        return;
    }
    for (int i = 1; i < dims->n; i++) {
        if (dims->at[i] == batch->value) { /* (sequence, batch, ...) */
            drop_dim(dims, i);
            return;
        }
    }
    parser->n_odd_shapes += dims->at[0] > 1;
    *ret_divide = batch->value;
}

/* Adds one tensor to the layer's outputs. Returns 0 or a fault; *ret_open is true when a dimension
 * is not known. */
static int add_tensor(struct parser *parser, struct dims *dims, struct layer *layer, bool *ret_open)
{
    int64_t product = 1, divide;
    for (int i = 0; i < dims->n; i++)
        if (dims->at[i] == 0)
            return parser_fault(parser, EINVAL, "a dimension of 0 in the output shape");
    take_out_batch(parser, dims, &divide);
    for (int i = 0; i < dims->n; i++) {
        if (dims->at[i] == DIM_OPEN)
            *ret_open = true;
        else if (__builtin_mul_overflow(product, dims->at[i], &product))
            return parser_fault(
                parser, ERANGE, "the product of the output shape is beyond 64 bits");
    }
    product = product / divide + (product % divide != 0);
    if (__builtin_add_overflow(layer->activations.value, product, &layer->activations.value))
        return parser_fault(parser, ERANGE, "the sum of the output shapes is beyond 64 bits");
    if (layer->rank == 0 && dims->n <= MODEL_RANK_MAX) {
        layer->rank = dims->n;
        memcpy(layer->shape, dims->at, (size_t)dims->n * sizeof dims->at[0]);
    }
    return 0;
}

static void forget_shape(struct layer *layer)
{
    layer->rank = 0;
    layer->activations = (struct count){0};
    memset(layer->shape, 0, sizeof layer->shape);
}

int parser_shape(struct parser *parser, struct span cell, struct layer *layer)
{
    struct dims dims = {.n = 0};
    bool open = false, any = false;
    cell = span_trim(cell);
    while (cell.size) {
        char c = cell.at[0];
        if (c == '[' || c == '(') {
            dims.n = 0;
        } else if (c == ']' || c == ')') {
            any |= dims.n > 0;
            int r = dims.n ? add_tensor(parser, &dims, layer, &open) : 0;
            if (r < 0)
                return r;
            dims.n = 0;
        } else if (c != ',' && c != ' ') {
            int64_t dim;
            int r = take_dim(parser, &cell, &dim);
            if (r < 0)
                return r;
            if (r > 0 || dims.n == (int)ARRAY_SIZE(dims.at)) {
                forget_shape(layer);
                return 0;
            }
            dims.at[dims.n++] = dim;
            continue;
        }
        cell = span_skip(cell, 1);
    }
    if (!any || open)
        forget_shape(layer);
    else
        layer->activations.known = true;
    return 0;
}
