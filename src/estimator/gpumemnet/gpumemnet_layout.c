/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position of each weight in the network's single array: layers follow each other in the order
 * in which a sample passes through them. A file of weights is that array, so this order is its
 * format.
 *
 * The sizes are those of the thesis, section 5.4.4: an ensemble of perceptrons whose first block
 * has 8 units and the others 4 (for CNNs, three groups of 1 to 8, 4 to 8 and 4 to 6 blocks; for the
 * other families, 1 to 7 and 1 to 6), and two encoders of width 6 with 3 layers, and of width 4
 * with 2 layers.
 */
#include "estimator/gpumemnet/gpumemnet_layout.h"

#include <math.h>

#include "base/array.h"

enum {
    WIDEST = 8,
    NARROWEST = 4
}; /* units of the first block of a perceptron, and of the others */

#define BIT(value) (1u << (value))

/* The inputs of each family and method (thesis, section 5.4.4). colloc adds VALUE_STATES and
 * VALUE_HALF to all. */
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

/* Hidden layers of the perceptrons of an ensemble (thesis, figure 5.7): one of each depth of each
 * range. */
enum { MEMBER_RANGES = 3 };
static const struct {
    int shallowest, deepest;
} members_of[GPUMEMNET_FAMILIES][MEMBER_RANGES] = {
    [GPUMEMNET_MLP] = {{1, 7}, {1, 6}},
    [GPUMEMNET_CNN] = {{1, 8}, {4, 8}, {4, 6}},
    [GPUMEMNET_TRANSFORMER] = {{1, 7}, {1, 6}},
};

/* The two encoders (thesis, section 5.4.4). */
static const struct {
    int width, n_layers;
} encoders[GPUMEMNET_ENCODERS] = {{6, 3}, {4, 2}};

const char *gpumemnet_method_name(enum gpumemnet_method method)
{
    static const char *const names[GPUMEMNET_METHODS] = {"mlp", "transformer"};
    return names[method];
}

static size_t take_numbers(struct gpumemnet_layout *layout, int n)
{
    size_t at = layout->size;
    layout->size += (size_t)n;
    return at;
}

static struct linear_layout take_linear(struct gpumemnet_layout *layout, int in, int out)
{
    struct linear_layout linear = {.in = in, .out = out, .weight = take_numbers(layout, in * out)};
    linear.bias = take_numbers(layout, out);
    return linear;
}

static struct norm_layout take_norm(struct gpumemnet_layout *layout, int width)
{
    struct norm_layout norm = {.width = width, .scale = take_numbers(layout, width)};
    norm.shift = take_numbers(layout, width);
    return norm;
}

static struct block_layout take_block(struct gpumemnet_layout *layout, int in, int out)
{
    struct block_layout block = {.linear = take_linear(layout, in, out)};
    block.norm = take_norm(layout, out);
    block.norm.mean = take_numbers(layout, out);
    block.norm.variance = take_numbers(layout, out);
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
    for (size_t i = 0; method == GPUMEMNET_ENCODER && i < ARRAY_SIZE(encoders); i++)
        add_encoder(layout, encoders[i].width, encoders[i].n_layers);
    layout->n_inputs = layout->n_values;
    for (int i = 0; i < layout->n_encoders; i++)
        layout->n_inputs += layout->encoder[i].width;
    for (int i = 0; i < MEMBER_RANGES && members_of[family][i].deepest; i++)
        add_members(layout, members_of[family][i].shallowest, members_of[family][i].deepest);
}

/* The longest wave of a position's channels, in places (Vaswani et al., 2017, section 3.5). */
static const double WAVE_MAX = 1e4;

void gpumemnet_waves_init(int width, struct gpumemnet_waves *ret_waves)
{
    ret_waves->width = width;
    for (int i = 0; i < width; i += 2)
        ret_waves->step[i / 2] = pow(WAVE_MAX, -(double)i / width);
}

void gpumemnet_position(const struct gpumemnet_waves *waves, size_t place, float *channels)
{
    for (int i = 0; i < waves->width; i += 2) {
        double angle = (double)place * waves->step[i / 2];
        channels[i] += (float)sin(angle);
        channels[i + 1] += (float)cos(angle);
    }
}
