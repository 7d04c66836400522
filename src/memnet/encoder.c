/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoder of the transformer that estimates memory, and its gradients. Two embedding blocks,
 * positions, then layers of attention and feed-forward with residuals and layer norms after them,
 * as in "Attention Is All You Need". Sequences have their own lengths: only attention works
 * sequence by sequence, everything else on all rows at once.
 */
#include "memnet/encoder.h"

#include <string.h>

size_t encoder_scratch(const struct encoder_layout *encoder, const struct batch *batch)
{
    size_t rows = 0, squares = 0, largest = 0, width = (size_t)encoder->width,
           layers = (size_t)encoder->n_layers;
    for (size_t i = 0; i < batch->n; i++) {
        size_t n = batch->rows[i]->n_tokens;
        rows += n;
        squares += n * n;
        largest = n > largest ? n : largest;
    }
    return rows * (4 * width + layers * (10 * width + GPUMEMNET_FEED_FORWARD + 2) + 7 * width) +
           layers * squares + largest * largest + 2 * width;
}

static void add_vector(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

/* ---- forward ---- */

static void add_positions(const struct batch *batch, int width, float *x)
{
    struct gpumemnet_waves waves;
    gpumemnet_waves_init(width, &waves);
    for (size_t i = 0; i < batch->n; i++)
        for (size_t t = 0; t < batch->rows[i]->n_tokens; t++, x += width)
            gpumemnet_position(&waves, t, x);
}

static void attend_all(
    const struct blas *blas, const struct batch *batch, int width, struct encoder_layer_tape *tape)
{
    const float *qkv = tape->qkv;
    float *weights = tape->weights, *mixed = tape->mixed;
    for (size_t i = 0; i < batch->n; i++) {
        size_t n = batch->rows[i]->n_tokens;
        attention_forward(blas, qkv, n, width, weights, mixed);
        qkv += 3 * (size_t)width * n;
        weights += n * n;
        mixed += (size_t)width * n;
    }
}

static size_t squares_of(const struct batch *batch)
{
    size_t sum = 0;
    for (size_t i = 0; i < batch->n; i++)
        sum += batch->rows[i]->n_tokens * batch->rows[i]->n_tokens;
    return sum;
}

/* Returns the layer's output. */
static float *layer_forward(const struct encoder_layer_layout *layer, float *weights,
    const float *x, const struct token_rows *tokens, struct scratch *scratch,
    struct encoder_layer_tape *tape)
{
    int width = layer->projection.in;
    size_t n = tokens->n, size = n * (size_t)width;
    tape->x = x;
    tape->qkv = scratch_alloc(scratch, 3 * size);
    tape->weights = scratch_alloc(scratch, squares_of(tokens->batch));
    tape->mixed = scratch_alloc(scratch, size);
    tape->between = scratch_alloc(scratch, size);
    tape->hidden = scratch_alloc(scratch, n * GPUMEMNET_FEED_FORWARD);
    float *y = scratch_alloc(scratch, size);
    linear_forward(scratch->blas, &layer->qkv, weights, x, n, tape->qkv);
    attend_all(scratch->blas, tokens->batch, width, tape);
    linear_forward(scratch->blas, &layer->projection, weights, tape->mixed, n, tape->between);
    add_vector(tape->between, x, size);
    layer_norm_forward(&layer->norm_attention, weights, tape->between, n, scratch,
        &tape->norm_attention, tape->between);
    linear_forward(scratch->blas, &layer->up, weights, tape->between, n, tape->hidden);
    relu_forward(tape->hidden, n * GPUMEMNET_FEED_FORWARD);
    linear_forward(scratch->blas, &layer->down, weights, tape->hidden, n, y);
    add_vector(y, tape->between, size);
    layer_norm_forward(
        &layer->norm_feed_forward, weights, y, n, scratch, &tape->norm_feed_forward, y);
    return y;
}

void encoder_forward(const struct encoder_layout *encoder, float *weights,
    const struct token_rows *tokens, struct scratch *scratch, struct encoder_tape *ret_tape,
    float *ret_sums, size_t stride)
{
    const struct batch *batch = tokens->batch;
    size_t width = (size_t)encoder->width;
    float *first = block_forward(
        &encoder->embedding[0], weights, tokens->x, tokens->n, scratch, &ret_tape->embedding[0]);
    float *second = block_forward(
        &encoder->embedding[1], weights, first, tokens->n, scratch, &ret_tape->embedding[1]);
    float *x = scratch_alloc(scratch, tokens->n * width);
    memcpy(x, second, tokens->n * width * sizeof *x);
    add_positions(batch, encoder->width, x);
    for (int i = 0; i < encoder->n_layers; i++)
        x = layer_forward(&encoder->layer[i], weights, x, tokens, scratch, &ret_tape->layer[i]);
    for (size_t i = 0; i < batch->n; i++) {
        memset(ret_sums + i * stride, 0, width * sizeof *ret_sums);
        for (size_t t = 0; t < batch->rows[i]->n_tokens; t++, x += width)
            add_vector(ret_sums + i * stride, x, width);
    }
}

/* ---- backward ---- */

static void attend_all_backward(const struct batch *batch, int width,
    const struct encoder_layer_tape *tape, const float *dmixed, struct scratch *scratch,
    float *dqkv)
{
    const float *qkv = tape->qkv, *weights = tape->weights;
    for (size_t i = 0; i < batch->n; i++) {
        size_t n = batch->rows[i]->n_tokens;
        attention_backward(qkv, weights, dmixed, n, width, scratch, dqkv);
        qkv += 3 * (size_t)width * n;
        dqkv += 3 * (size_t)width * n;
        weights += n * n;
        dmixed += (size_t)width * n;
    }
}

/* `d`: the derivative of the output; afterwards that of the input. */
static void layer_backward(const struct encoder_layer_layout *layer, const float *weights,
    const struct token_rows *tokens, const struct encoder_layer_tape *tape, float *d,
    struct scratch *scratch, float *gradients)
{
    int width = layer->projection.in;
    size_t n = tokens->n, size = n * (size_t)width, mark = scratch->used;
    float *between = scratch_alloc(scratch, size), *dqkv = scratch_alloc(scratch, 3 * size);
    float *hidden = dqkv; /* used before dqkv; its rows are narrower */
    layer_norm_backward(
        &layer->norm_feed_forward, weights, &tape->norm_feed_forward, d, n, gradients, d);
    linear_backward(scratch->blas, &layer->down, weights, tape->hidden, d, n, gradients, hidden);
    relu_backward(tape->hidden, hidden, n * GPUMEMNET_FEED_FORWARD);
    linear_backward(
        scratch->blas, &layer->up, weights, tape->between, hidden, n, gradients, between);
    add_vector(between, d, size);
    layer_norm_backward(
        &layer->norm_attention, weights, &tape->norm_attention, between, n, gradients, between);
    linear_backward(
        scratch->blas, &layer->projection, weights, tape->mixed, between, n, gradients, d);
    attend_all_backward(tokens->batch, width, tape, d, scratch, dqkv);
    linear_backward(scratch->blas, &layer->qkv, weights, tape->x, dqkv, n, gradients, d);
    add_vector(d, between, size);
    scratch->used = mark;
}

void encoder_backward(const struct encoder_layout *encoder, const float *weights,
    const struct token_rows *tokens, const struct encoder_tape *tape, const float *dsums,
    size_t stride, struct scratch *scratch, float *gradients)
{
    const struct batch *batch = tokens->batch;
    size_t width = (size_t)encoder->width, row = 0;
    float *d = scratch_alloc(scratch, tokens->n * width),
          *dfirst = scratch_alloc(scratch, tokens->n * width);
    for (size_t i = 0; i < batch->n; i++)
        for (size_t t = 0; t < batch->rows[i]->n_tokens; t++, row++)
            memcpy(d + row * width, dsums + i * stride, width * sizeof *d);
    for (int i = encoder->n_layers; i-- > 0;)
        layer_backward(&encoder->layer[i], weights, tokens, &tape->layer[i], d, scratch, gradients);
    block_backward(&encoder->embedding[1], weights, &tape->embedding[1], d, tokens->n, scratch,
        gradients, dfirst);
    block_backward(&encoder->embedding[0], weights, &tape->embedding[0], dfirst, tokens->n, scratch,
        gradients, NULL);
}
