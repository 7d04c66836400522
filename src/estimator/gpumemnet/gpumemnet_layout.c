/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each number of a network stands in its one array: layers take their places in the order in
 * which a sample passes through them. A file of weights is that array, so this order is its
 * format.
 */
#include "estimator/gpumemnet/gpumemnet_layout.h"

#include <math.h>

enum { WIDEST = 8, NARROWEST = 4 };

#define BIT(value) (1u << (value))

/* Sections 5.4.4 of the thesis say which values each takes; the last two are ours. */
static const unsigned values_of[GPUMEMNET_FAMILIES][GPUMEMNET_METHODS] = {
    [GPUMEMNET_MLP] = {BIT(VALUE_LINEARS) | BIT(VALUE_NORMS) | BIT(VALUE_DROPOUTS) |
                           BIT(VALUE_BATCH) | BIT(VALUE_PARAMETERS) | BIT(VALUE_ACTIVATIONS) |
                           BIT(VALUE_FUNCTION_SIN) | BIT(VALUE_FUNCTION_COS),
        BIT(VALUE_LINEARS) | BIT(VALUE_PARAMETERS) | BIT(VALUE_ACTIVATIONS) | BIT(VALUE_BATCH) |
            BIT(VALUE_BATCH_ACTIVATIONS)},
#define OF_CNN                                                                                     \
    (BIT(VALUE_DEPTH) | BIT(VALUE_CONVS) | BIT(VALUE_NORMS) | BIT(VALUE_DROPOUTS) |                \
        BIT(VALUE_BATCH) | BIT(VALUE_PARAMETERS) | BIT(VALUE_ACTIVATIONS) |                        \
        BIT(VALUE_FUNCTION_SIN) | BIT(VALUE_FUNCTION_COS) | BIT(VALUE_BATCH_ACTIVATIONS))
    [GPUMEMNET_CNN] = {OF_CNN, OF_CNN},
#define OF_TRANSFORMER                                                                             \
    (BIT(VALUE_DEPTH) | BIT(VALUE_LINEARS) | BIT(VALUE_NORMS) | BIT(VALUE_DROPOUTS) |              \
        BIT(VALUE_BATCH) | BIT(VALUE_PARAMETERS) | BIT(VALUE_ACTIVATIONS) |                        \
        BIT(VALUE_BATCH_ACTIVATIONS))
    [GPUMEMNET_TRANSFORMER] = {OF_TRANSFORMER, OF_TRANSFORMER},
};

const char *gpumemnet_method_name(enum gpumemnet_method method)
{
    static const char *const names[GPUMEMNET_METHODS] = {"mlp", "transformer"};
    return names[method];
}

static size_t take(struct gpumemnet_layout *layout, int n)
{
    size_t at = layout->size;
    layout->size += (size_t)n;
    return at;
}

static struct linear_layout take_linear(struct gpumemnet_layout *layout, int in, int out)
{
    struct linear_layout linear = {.in = in, .out = out, .weight = take(layout, in * out)};
    linear.bias = take(layout, out);
    return linear;
}

static struct norm_layout take_norm(struct gpumemnet_layout *layout, int width)
{
    struct norm_layout norm = {.width = width, .scale = take(layout, width)};
    norm.shift = take(layout, width);
    return norm;
}

static struct block_layout take_block(struct gpumemnet_layout *layout, int in, int out)
{
    struct block_layout block = {.linear = take_linear(layout, in, out)};
    block.norm = take_norm(layout, out);
    block.norm.mean = take(layout, out);
    block.norm.variance = take(layout, out);
    return block;
}

static void add_encoder(struct gpumemnet_layout *layout, int width, int n_layers)
{
    struct encoder_layout *encoder = &layout->encoder[layout->n_encoders++];
    encoder->width = width;
    encoder->n_layers = n_layers;
    encoder->embedding[0] = take_block(layout, TOKEN_SIZE, width);
    encoder->embedding[1] = take_block(layout, width, width);
    for (int i = 0; i < n_layers; i++) {
        struct encoder_layer_layout *layer = &encoder->layer[i];
        layer->qkv = take_linear(layout, width, 3 * width);
        layer->projection = take_linear(layout, width, width);
        layer->norm_attention = take_norm(layout, width);
        layer->up = take_linear(layout, width, GPUMEMNET_FEED_FORWARD);
        layer->down = take_linear(layout, GPUMEMNET_FEED_FORWARD, width);
        layer->norm_feed_forward = take_norm(layout, width);
    }
}

static void add_members(struct gpumemnet_layout *layout, int shallowest, int deepest)
{
    for (int depth = shallowest; depth <= deepest; depth++) {
        struct member_layout *member = &layout->member[layout->n_members++];
        int in = layout->n_inputs;
        member->n_blocks = depth;
        for (int i = 0; i < depth; i++) {
            int out = i == 0 ? WIDEST : NARROWEST;
            member->block[i] = take_block(layout, in, out);
            in = out;
        }
        member->logits = take_linear(layout, in, layout->n_classes);
    }
}

void gpumemnet_layout_init(enum gpumemnet_family family, enum gpumemnet_method method,
    int n_classes, struct gpumemnet_layout *ret_layout)
{
    struct gpumemnet_layout *layout = ret_layout;
    unsigned values = values_of[family][method] | BIT(VALUE_STATES) | BIT(VALUE_HALF);
    *layout = (struct gpumemnet_layout){.method = method, .n_classes = n_classes};
    for (int i = 0; i < GPUMEMNET_VALUES; i++)
        if (values & BIT(i))
            layout->values[layout->n_values++] = (enum gpumemnet_value)i;
    if (method == GPUMEMNET_ENCODER) {
        add_encoder(layout, 6, 3);
        add_encoder(layout, 4, 2);
    }
    layout->n_inputs = layout->n_values;
    for (int i = 0; i < layout->n_encoders; i++)
        layout->n_inputs += layout->encoder[i].width;
    if (family == GPUMEMNET_CNN) {
        add_members(layout, 1, 8);
        add_members(layout, 4, 8);
        add_members(layout, 4, 6);
    } else {
        add_members(layout, 1, 7);
        add_members(layout, 1, 6);
    }
}

void gpumemnet_position(size_t place, int width, float *channels)
{
    for (int i = 0; i < width; i += 2) {
        double angle = (double)place * pow(1e4, -(double)i / width);
        channels[i] += (float)sin(angle);
        channels[i + 1] += (float)cos(angle);
    }
}
