/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the input of a layer: summaries list layers, not the connections between them.
 *
 * The first of these that fits the layer's parameters and output is taken for the input: the tensor
 * made last; the nearest earlier tensor, first of those outside of ended blocks, then of those
 * hidden in them; a merge of the last tensor with an earlier one (a concatenation, a gate, a
 * scaling). If nothing fits, a layer without parameters gets an input with the size of its output;
 * any other layer gets the tensor made last, which is counted as a guess.
 *
 * Example: Conv2d with 36,928 parameters that puts out 64 channels has 36,928 / 64 - 1 = 576
 * weights per output channel: 64 channels in a window of 3 x 3. A tensor of 128 channels does not
 * fit (576 / 128 is not a window); an earlier one of 64 channels does, so the convolution is a
 * parallel branch.
 *
 * All sizes here are chosen so that they hold for the published networks in data/memory
 * (torchvision, timm, transformers). For other networks more inputs are guesses, which widens the
 * quantiles of their estimates.
 */
#include "estimator/physics/layer_input.h"

#include <math.h>

#include "base/array.h"
#include "estimator/physics/attention.h"
#include "estimator/physics/library_rules.h"

/* Chosen: how far back an input may lie. DenseNet's longest block has 48 layers that one
 * convolution joins; blocks hide at most some hundred tensors each; a gate's halves are
 * neighbours. */
enum { LOOK_BACK = 48, LOOK_BACK_HIDDEN = 256, GATE_LOOK_BACK = 3 };

/* Taps of the windows that published convolutions have. */
enum {
    SIDE_MAX = 32,      /* of patches: vision transformers cut 32 x 32 pixels at most */
    SEPARATED_MAX = 15, /* 1 x n and n x 1 windows */
    WINDOW_MAX = 121,   /* 11 x 11: AlexNet's first layer, RepLKNet aside */
    CUBE = 27,          /* 3 x 3 x 3: of volumes */
    PATCH_OF_FOUR = 16, /* 4 x 4 */
    PATCH_OVERLAP = 4,  /* patches of 4 x 4 may overlap by half a side */
};

enum { DATA_BYTES = 4 }; /* images come as fp32 */

/* A map may be this much smaller than its output would need, for borders that are cut off. */
static const double patch_slack = 1.1, window_slack = 1.5;

/* Sides in pixels of the first map of published networks over images: half of 224 (with the borders
 * that windows leave), half of 299, half of 320, a quarter of 224, a seventh of 256. */
enum {
    HALF_224_MIN = 109,
    HALF_224_MAX = 113,
    HALF_299_MIN = 147,
    HALF_299_MAX = 150,
    HALF_320 = 160,
    HALF_256 = 128,
    QUARTER_224_MIN = 54,
    QUARTER_224 = 56,
    QUARTER_224_MAX = 57,
    SEVENTH_256_MAX = 37,
};

static bool is_square(double x)
{
    double root = floor(sqrt(x) + 0.5);
    return root * root == x && root <= SIDE_MAX;
}

/* Tests whether kernels have this number of taps: odd squares up to 11 x 11 (and 3 x 3 x 3), odd
 * lengths of separated kernels, even squares of patches. */
static bool is_window(double x)
{
    bool odd = fmod(x, 2) == 1;
    return x == 1 || x == CUBE || (odd && x > 1 && x <= SEPARATED_MAX) ||
           (odd && x <= WINDOW_MAX && is_square(x)) || (!odd && is_square(x));
}

/* Weights per output channel, without `others`: its bias, and its gain if there is one. */
static double fan_in(const struct layer *layer, double outputs, int others)
{
    return outputs > 0 ? (double)layer->parameters / outputs - others : 0;
}

/* Returns the taps of a convolution from `channels` to the extent's channels, by its parameters; 0:
 * no number of taps fits them. */
static double window_of(
    const struct layer *layer, struct extent extent, double channels, bool *ret_depthwise)
{
    *ret_depthwise = false;
    if (layer->kernel_size != LAYER_SIZE_UNKNOWN && layer->in_size != LAYER_SIZE_UNKNOWN) {
        double taps = (double)layer->kernel_size;
        *ret_depthwise = channels > 1 && (fan_in(layer, extent.first, false) == taps ||
                                             fan_in(layer, extent.first, true) == taps);
        return channels == (double)layer->in_size ? taps : 0;
    }
    int gains = library_standardizes_weight(layer->type);
    for (int others = 0; others <= 1 + gains; others++) {
        double per = fan_in(layer, extent.first, others);
        if (channels > 0 && is_window(per / channels))
            return per / channels;
        if (channels > 1 && fmod(extent.first, channels) == 0 && per > 1 && per <= WINDOW_MAX &&
            is_square(per) && fmod(per, 2) == 1) {
            *ret_depthwise = true;
            return per;
        }
    }
    return 0;
}

static double count_places(struct extent extent)
{
    return extent.first > 0 ? extent.elements / extent.first : 0;
}

static bool conv_fits(
    const struct layer *layer, struct extent input, struct extent extent, struct op *op)
{
    bool depthwise, enlarges = span_starts(layer->type, "ConvTranspose");
    double window = window_of(layer, extent, input.first, &depthwise);
    /* Patches do not overlap; those of 4 x 4 by half a side at most. If the text shows the window,
     * it shows the stride, too, and the places follow from it. */
    bool patches = window > 0 && fmod(window, 2) == 0 && layer->kernel_size == LAYER_SIZE_UNKNOWN;
    if (patches && !enlarges &&
        count_places(input) * patch_slack <
            count_places(extent) * (window == PATCH_OF_FOUR ? PATCH_OVERLAP : window))
        return false;
    if (window == 0 || (!enlarges && count_places(input) * window_slack < count_places(extent)))
        return false;
    op->window = window;
    op->depthwise = depthwise;
    op->turned = false;
    return true;
}

/* Returns the extent as a convolution gets it, for tokens or a square map whose channels are the
 * last dimension. */
static bool turned_fits(
    const struct layer *layer, struct extent input, struct extent extent, struct op *op)
{
    bool tokens = input.elements == input.first * input.last;
    bool map = input.elements == input.first * input.first * input.last;
    struct extent turned = {.elements = input.elements, .first = input.last, .last = input.first};
    bool fits = (tokens || map) && conv_fits(layer, turned, extent, op);
    op->turned = fits;
    return fits;
}

static bool linear_fits(const struct layer *layer, struct extent input, struct extent extent)
{
    for (int bias = 0; bias < 2; bias++) {
        double wanted = layer->in_size != LAYER_SIZE_UNKNOWN ? (double)layer->in_size
                                                             : fan_in(layer, extent.last, bias);
        bool transposed = wanted == input.first && wanted == input.elements / input.last &&
                          extent.last != input.last && extent.first == input.last;
        if (wanted == input.last || wanted == input.elements || transposed)
            return true;
    }
    return false;
}

static bool fits_layer(
    const struct layer *layer, struct extent input, struct extent extent, struct op *op)
{
    if (!extent_is_known(input))
        return true;
    switch (layer->kind) {
    case LAYER_CONV:
        return conv_fits(layer, input, extent, op) || turned_fits(layer, input, extent, op);
    case LAYER_LINEAR:
        return linear_fits(layer, input, extent);
    case LAYER_NORM:
    case LAYER_ACTIVATION:
    case LAYER_DROPOUT:
        return input.elements == extent.elements;
    case LAYER_POOL:
    case LAYER_POOL_GLOBAL:
        return input.first == extent.first || input.last == extent.last;
    default:
        return true;
    }
}

/* Finds a gated unit: a product of two maps of the same size that no layer of the text reads. */
static int find_gate(const struct builder *builder, const struct layer *layer)
{
    const struct tape *tape = builder->tape;
    const struct tensor *now = &tape->tensors[builder->current];
    if (layer->kind != LAYER_LINEAR || builder->extents.sequence == SEQUENCE_UNKNOWN)
        return TAPE_NONE;
    for (int i = builder->current - 1; i >= 0 && i >= builder->current - GATE_LOOK_BACK; i--)
        if (!builder->consumed[i] && tape->tensors[i].elements == now->elements &&
            tape->tensors[i].last == now->last)
            return i;
    return TAPE_NONE;
}

/* Iterates over the tensors before the current one, the newest first: those outside of ended
 * blocks, or those hidden in them. Returns TAPE_NONE at the end. */
struct search {
    const struct builder *builder;
    bool hidden;
    int at, seen;
};

static struct search search_begin(const struct builder *builder, bool hidden)
{
    return (struct search){builder, hidden, builder->current, 0};
}

static int search_next(struct search *search)
{
    int end = search->builder->current - LOOK_BACK_HIDDEN;
    while (--search->at >= 0 && search->at >= end && search->seen < LOOK_BACK)
        if (search->builder->hidden[search->at] == search->hidden) {
            search->seen++;
            return search->at;
        }
    return TAPE_NONE;
}

/* Tests whether the layer reads maps, or vectors, side by side. */
static bool joined_fits(
    const struct layer *layer, struct extent both, struct extent extent, struct op *op)
{
    if (layer->kind == LAYER_CONV)
        return conv_fits(layer, both, extent, op) && !op->depthwise;
    if (layer->kind == LAYER_LINEAR)
        return both.first == both.elements && linear_fits(layer, both, extent);
    return both.first == extent.first;
}

/* Tests whether an embedding has made a tensor. Its operations are searched from the newest one on,
 * since the tensors in question are near the end. */
static bool is_embedded(const struct builder *builder, int tensor)
{
    for (size_t k = builder->embeddings.n; k-- > 0;) {
        int output = builder->tape->ops[builder->embeddings.ops[k]].output;
        if (output <= tensor)
            return output == tensor;
    }
    return false;
}

/* Returns the embedded vector beside the embedded vector `tensor` that has its width; TAPE_NONE:
 * there is none. */
static int find_factor(const struct builder *builder, int tensor)
{
    const struct tensor *tensors = builder->tape->tensors;
    for (int i = tensor - 1; i <= tensor + 1; i += 2)
        if (i >= 0 && i < builder->current && tensors[i].elements == tensors[tensor].elements &&
            is_embedded(builder, i) && is_embedded(builder, tensor))
            return i;
    return TAPE_NONE;
}

/*
 * Joins the current tensor and an earlier one. An embedded vector that was joined before appears
 * again as a factor: the layer reads its product with the vector beside it (matrix factorisation,
 * arXiv:1708.05031), which keeps both.
 */
static int join_tensors(
    struct builder *builder, const struct layer *layer, int earlier, struct extent both)
{
    int current = builder->current;
    int factor = layer->kind == LAYER_LINEAR && builder->consumed[earlier]
                     ? find_factor(builder, earlier)
                     : TAPE_NONE;
    if (factor != TAPE_NONE)
        earlier = builder_merge(builder, earlier, factor, true, builder_extent(builder, earlier));
    return earlier < 0 ? earlier : builder_merge(builder, current, earlier, false, both);
}

/* Finds two neighbouring maps whose channels together are the input channels of a convolution or a
 * pooling, or two vectors that a linear layer reads. */
static int concatenate_for(struct builder *builder, const struct layer *layer, struct extent extent,
    bool hidden, struct op *op)
{
    struct extent now = builder_extent(builder, builder->current);
    struct search search = search_begin(builder, hidden);
    for (int i = search_next(&search); i != TAPE_NONE; i = search_next(&search)) {
        struct extent other = builder_extent(builder, i), both = now;
        both.first += other.first;
        both.elements += other.elements;
        both.last = both.first == both.elements ? both.first : both.last;
        bool hidden_layer = layer->kind == LAYER_LINEAR && builder->consumed[i] &&
                            !is_embedded(builder, i) && !builder->tape->tensors[i].is_data;
        if (hidden_layer || count_places(other) != count_places(now) ||
            !joined_fits(layer, both, extent, op))
            continue;
        return join_tensors(builder, layer, i, both);
    }
    return TAPE_NONE;
}

/* No earlier tensor has the size: assumes an input of the size of the output, for a layer that can
 * have one. */
static int make_up(struct builder *builder, const struct layer *layer, struct extent extent)
{
    bool keeps_size = layer->kind == LAYER_NORM || layer->kind == LAYER_ACTIVATION ||
                      layer->kind == LAYER_DROPOUT ||
                      (layer->kind == LAYER_LINEAR && linear_fits(layer, extent, extent));
    if (keeps_size)
        return builder_merge(builder, builder->current, TAPE_NONE, false, extent);
    builder->tape->doubts.n_guessed++;
    return builder->current;
}

/* Windows that do not overlap are applied to the tensor made last. */
static bool is_patch(const struct layer *layer, const struct op *op)
{
    return layer->kind == LAYER_CONV && !span_starts(layer->type, "ConvTranspose") &&
           fmod(op->window, 2) == 0;
}

/* Finds an earlier tensor that fits, or a merge of one with the current one. Returns TAPE_NONE if
 * there is neither. */
static int find_earlier(struct builder *builder, const struct layer *layer, struct extent extent,
    bool hidden, struct op *op)
{
    struct extent now = builder_extent(builder, builder->current);
    struct search search = search_begin(builder, hidden);
    for (int i = search_next(&search); i != TAPE_NONE; i = search_next(&search)) {
        struct extent earlier = builder_extent(builder, i);
        bool data = builder->tape->tensors[i].is_data && layer->kind == LAYER_NORM;
        if (data || !fits_layer(layer, earlier, extent, op) || is_patch(layer, op))
            continue;
        if (extent_is_scale_of(now, earlier))
            return builder_merge(builder, i, builder->current, true, earlier);
        return i;
    }
    bool takes_maps = layer->kind == LAYER_CONV || layer->kind == LAYER_POOL;
    return takes_maps ? concatenate_for(builder, layer, extent, hidden, op) : TAPE_NONE;
}

static int look_back(
    struct builder *builder, const struct layer *layer, struct extent extent, struct op *op)
{
    struct extent now = builder_extent(builder, builder->current);
    if (layer->kind == LAYER_NORM && extent.elements * 2 == now.elements &&
        extent.last * 2 == now.last)
        return builder->current; /* one of its halves */
    /* A vector that no layer has read is read by this one, with another. */
    bool joins = layer->kind == LAYER_LINEAR && !builder->consumed[builder->current];
    int found = joins ? concatenate_for(builder, layer, extent, false, op) : TAPE_NONE;
    if (found == TAPE_NONE)
        found = find_earlier(builder, layer, extent, false, op);
    if (found == TAPE_NONE)
        found = find_earlier(builder, layer, extent, true, op);
    if (found != TAPE_NONE)
        return found;
    op->window = 0;
    op->depthwise = false;
    return make_up(builder, layer, extent);
}

static bool is_usual(double window)
{
    return is_square(window) && fmod(window, 2) == 1;
}

/* Returns the channels of the images that a first convolution reads, by its parameters. */
static double image_channels(const struct layer *layer, struct extent extent, struct op *op)
{
    static const double usual[] = {3, 1, 4, 2}; /* colour, grey, with transparency, two */
    double channels = layer->in_size != LAYER_SIZE_UNKNOWN ? (double)layer->in_size : 3;
    for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
        bool depthwise;
        double window = window_of(layer, extent, usual[i], &depthwise);
        bool better = window > 0 && !depthwise &&
                      (op->window == 0 || (is_usual(window) && !is_usual(op->window)));
        op->window = better ? window : op->window;
        channels = better ? usual[i] : channels;
    }
    return channels;
}

/*
 * Returns the stride of the first convolution over images, from its window and the side of its
 * output: the text has neither the stride nor the size of the image. Patches do not overlap; the
 * first maps of published networks are half or a quarter of 224, 299 or 320 pixels.
 */
static double stem_stride(const struct op *op, struct extent extent, bool volume, bool makes_tokens)
{
    double side = extent.last, taps = floor(sqrt(op->window) + 0.5);
    bool quarter = side >= QUARTER_224_MIN && side <= QUARTER_224_MAX;
    if (volume || taps * taps != op->window)
        return volume && quarter ? 2 : 1;
    if (fmod(taps, 2) == 0)
        return taps == 4 && side != QUARTER_224 ? 2 : taps;
    bool half = (side >= HALF_224_MIN && side <= HALF_224_MAX) ||
                (side >= HALF_299_MIN && side <= HALF_299_MAX) || side == HALF_320;
    if (taps == 7 && makes_tokens)
        return 4; /* patches that overlap (arXiv:2105.15203, 2106.13797) */
    if (half || (taps == 7 && side == HALF_256))
        return 2;
    if (taps >= 7 && quarter)
        return 4;
    return taps == 7 && side <= SEVENTH_256_MAX ? 7 : 1;
}

/* Tests whether the layer after a convolution normalises the places of its map as tokens. */
static bool makes_tokens(
    const struct builder *builder, const struct layer *layer, struct extent extent)
{
    const struct model *model = builder->extents.model;
    const struct layer *next = layer + 1;
    return next < model->layers + model->n_layers && next->kind == LAYER_NORM && next->rank == 2 &&
           (double)next->activations.value == extent.elements &&
           (double)next->shape[1] == extent.first;
}

/* The batch that the first layer is applied to. */
static int make_data(
    struct builder *builder, const struct layer *layer, struct extent extent, struct op *op)
{
    struct extent data = {0};
    if (layer->kind == LAYER_CONV) {
        data.first = image_channels(layer, extent, op);
        double stride = layer->rank >= 3 ? stem_stride(op, extent, layer->rank == 4,
                                               makes_tokens(builder, layer, extent))
                                         : 1;
        data.elements = data.first * count_places(extent) * stride * stride;
        data.last = extent.last;
    } else if (layer->kind == LAYER_LINEAR) {
        double with_bias = fan_in(layer, extent.last, true);
        data.last = layer->in_size != LAYER_SIZE_UNKNOWN
                        ? (double)layer->in_size
                        : floor(fan_in(layer, extent.last, with_bias == floor(with_bias)));
        data.elements = data.last * (extent.last > 0 ? extent.elements / extent.last : 1);
        data.first = data.elements > data.last ? extent.first : data.last;
    }
    if (!(data.elements > 0))
        return TAPE_NONE;
    struct op input = {
        .kind = LAYER_INPUT, .layer = TAPE_NONE, .inputs = {TAPE_NONE, TAPE_NONE, TAPE_NONE}};
    input.output = builder_tensor(builder, data, DATA_BYTES);
    if (input.output < 0)
        return input.output;
    builder->tape->tensors[input.output].is_data = true;
    int r = builder_op(builder, &input);
    return r < 0 ? r : input.output;
}

/* Chosen: the heads of a detector are nearer. A search of all layers for each of 50,000 would take
 * seconds. */
enum { PARAMETERS_LOOK_BACK = 1000 };

/* Returns the layer with the parameters of its first use: a convolution that is listed without any
 * is one before it with as many channels, applied to another map. */
static struct layer with_parameters(
    const struct builder *builder, const struct layer *layer, struct extent extent)
{
    struct layer first = *layer;
    bool again = layer->kind == LAYER_CONV && layer->parameters == 0 &&
                 layer->in_size == LAYER_SIZE_UNKNOWN;
    const struct layer *layers = builder->extents.model->layers;
    if (layer - layers > PARAMETERS_LOOK_BACK)
        layers = layer - PARAMETERS_LOOK_BACK;
    for (const struct layer *k = layer; again && first.parameters == 0 && k > layers;)
        if ((--k)->kind == LAYER_CONV && k->rank > 0 && (double)k->shape[0] == extent.first)
            first.parameters = k->parameters;
    return first;
}

int layer_input_find(
    struct builder *builder, const struct layer *listed, struct extent extent, struct op *op)
{
    const struct layer found_again = with_parameters(builder, listed, extent),
                       *layer = &found_again;
    int found = builder->current;
    if (layer->kind == LAYER_EMBEDDING) {
        found = TAPE_NONE;
    } else if (builder->current == TAPE_NONE) {
        found = make_data(builder, listed, extent, op);
    } else if (layer->kind == LAYER_LINEAR && attention_source(builder) != TAPE_NONE) {
        found = attention_source(builder);
    } else if (fits_layer(layer, builder_extent(builder, builder->current), extent, op)) {
        int gate = builder_is_in_adapter(builder) ? TAPE_NONE : find_gate(builder, layer);
        if (gate != TAPE_NONE)
            found = builder_merge(
                builder, builder->current, gate, true, builder_extent(builder, builder->current));
    } else {
        found = look_back(builder, layer, extent, op);
    }
    if (found < TAPE_NONE)
        return found;
    op->inputs[0] = found;
    return 0;
}
