/* SPDX-License-Identifier: Apache-2.0 */
/* The distributions of PyTorch's layers, since the thesis trained with PyTorch: linear layers are
 * uniform within 1 / sqrt(inputs), attention follows Glorot and Bengio (2010), norms start with
 * scale 1 and bias 0. */
#include "memnet/initial_weights.h"

#include <math.h>
#include <string.h>

static void draw_uniform(struct seeded_random *random, float *x, int n, double bound)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)((2 * seeded_random_fraction(random) - 1) * bound);
}

static void draw_linear(
    const struct linear_layout *linear, struct seeded_random *random, float *weights)
{
    double bound = 1 / sqrt(linear->in);
    draw_uniform(random, weights + linear->weight, linear->in * linear->out, bound);
    draw_uniform(random, weights + linear->bias, linear->out, bound);
}

static void draw_scale(const struct norm_layout *norm, float *weights)
{
    for (int i = 0; i < norm->width; i++)
        weights[norm->scale + (size_t)i] = 1;
}

static void draw_block(
    const struct block_layout *block, struct seeded_random *random, float *weights)
{
    draw_linear(&block->linear, random, weights);
    draw_scale(&block->norm, weights);
    for (int i = 0; i < block->norm.width; i++)
        weights[block->norm.variance + (size_t)i] = 1;
}

/* Query, key and value after Glorot; their biases and the projection's are 0. */
static void draw_encoder_layer(
    const struct encoder_layer_layout *layer, struct seeded_random *random, float *weights)
{
    draw_uniform(random, weights + layer->qkv.weight, layer->qkv.in * layer->qkv.out,
        sqrt(6.0 / (layer->qkv.in + layer->qkv.out)));
    draw_uniform(random, weights + layer->projection.weight,
        layer->projection.in * layer->projection.out, 1 / sqrt(layer->projection.in));
    draw_linear(&layer->up, random, weights);
    draw_linear(&layer->down, random, weights);
    draw_scale(&layer->norm_attention, weights);
    draw_scale(&layer->norm_feed_forward, weights);
}

void initial_weights_draw(
    const struct gpumemnet_layout *layout, struct seeded_random *random, float *ret_weights)
{
    memset(ret_weights, 0, layout->size * sizeof *ret_weights);
    for (int e = 0; e < layout->n_encoders; e++) {
        const struct encoder_layout *encoder = &layout->encoder[e];
        for (int i = 0; i < 2; i++)
            draw_block(&encoder->embedding[i], random, ret_weights);
        for (int i = 0; i < encoder->n_layers; i++)
            draw_encoder_layer(&encoder->layer[i], random, ret_weights);
    }
    for (int m = 0; m < layout->n_members; m++) {
        for (int i = 0; i < layout->member[m].n_blocks; i++)
            draw_block(&layout->member[m].block[i], random, ret_weights);
        draw_linear(&layout->member[m].logits, random, ret_weights);
    }
}
