/* SPDX-License-Identifier: Apache-2.0 */
#include "memnet/start.h"

#include <math.h>
#include <string.h>

static void uniform(struct random *random, float *x, int n, double bound)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)((2 * random_part(random) - 1) * bound);
}

static void start_linear(const struct linear_layout *linear, struct random *random, float *weights)
{
    double bound = 1 / sqrt(linear->in);
    uniform(random, weights + linear->weight, linear->in * linear->out, bound);
    uniform(random, weights + linear->bias, linear->out, bound);
}

static void start_scale(const struct norm_layout *norm, float *weights)
{
    for (int i = 0; i < norm->width; i++)
        weights[norm->scale + (size_t)i] = 1;
}

static void start_block(const struct block_layout *block, struct random *random, float *weights)
{
    start_linear(&block->linear, random, weights);
    start_scale(&block->norm, weights);
    for (int i = 0; i < block->norm.width; i++)
        weights[block->norm.variance + (size_t)i] = 1;
}

/* Query, key and value after Glorot, without bias; so is the projection's bias. */
static void start_encoder_layer(
    const struct encoder_layer_layout *layer, struct random *random, float *weights)
{
    uniform(random, weights + layer->qkv.weight, layer->qkv.in * layer->qkv.out,
        sqrt(6.0 / (layer->qkv.in + layer->qkv.out)));
    uniform(random, weights + layer->projection.weight,
        layer->projection.in * layer->projection.out, 1 / sqrt(layer->projection.in));
    start_linear(&layer->up, random, weights);
    start_linear(&layer->down, random, weights);
    start_scale(&layer->norm_attention, weights);
    start_scale(&layer->norm_feed_forward, weights);
}

void start_weights(const struct gpumemnet_layout *layout, struct random *random, float *ret_weights)
{
    memset(ret_weights, 0, layout->size * sizeof *ret_weights);
    for (int e = 0; e < layout->n_encoders; e++) {
        const struct encoder_layout *encoder = &layout->encoder[e];
        for (int i = 0; i < 2; i++)
            start_block(&encoder->embedding[i], random, ret_weights);
        for (int i = 0; i < encoder->n_layers; i++)
            start_encoder_layer(&encoder->layer[i], random, ret_weights);
    }
    for (int m = 0; m < layout->n_members; m++) {
        for (int i = 0; i < layout->member[m].n_blocks; i++)
            start_block(&layout->member[m].block[i], random, ret_weights);
        start_linear(&layout->member[m].logits, random, ret_weights);
    }
}
