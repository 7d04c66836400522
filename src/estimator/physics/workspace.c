/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch memory of convolutions.
 *
 * cuDNN's fast kernels read and write maps with the channels last, filled up to a multiple that
 * tensor cores take, while PyTorch's default is channels first. So a kernel first copies input,
 * output and weight into that form; the copies are the workspace. The gradient of the weight is
 * computed in as many parts as there are multiprocessors without a tile of it, and the parts are
 * added up: these sums are there, too. Example, in 32 bit: 64 samples of 256 x 56 x 56, 256
 * channels out, 9 taps. Input and output have 196 MiB each, the weight 2.25 MiB: 394.25 MiB. The
 * weight's gradient has 9 x 2 x 2 tiles of 128 x 128, which fit three times into 132
 * multiprocessors: 6.75 MiB more.
 *
 * Groups of at most 64 channels are taken side by side into tiles of 64 channels, and in 32 bit
 * there are as many parts as fill half of the multiprocessors with these tiles. Example: 32 groups
 * of 8 channels are 4 tiles, so 16 parts of the weight's 72 KiB: 1.1 MiB.
 *
 * Other kernels copy less, or nothing. Which one runs shows in the shapes to a part:
 *
 *   - depthwise, and over images with at most 9 taps forward: nothing;
 *   - one tap: a product of matrices over the maps as they are, if they have as many positions out
 *     as in. Its weight's gradient needs a multiple of 8 of them, and is worth copies otherwise
 *     for many channels;
 *   - over patches of an image (no position is read twice): nothing forward;
 *   - in 32 bit forward, with twice as many channels out, over half the side or from 64 to 128
 *     channels: the output is written in its place.
 *
 * From the workspaces of 34,612 passes on an H200 (data/memory/kernels.jsonl.xz, cuDNN 9.19):
 * docs/measured/estimators.md.
 */
#include "estimator/physics/workspace.h"

#include <math.h>

#include "base/units.h"

/* What channels are filled up to: 16 bytes, and within groups of more than 16 channels 32 of them.
 * Measured. */
enum { FILL_SINGLE = 4, FILL_HALF = 8, FILL_GROUP = 32, FILL_GROUP_FROM = 17 };

/* The sums of a weight's gradient: fp32 tiles of at most 128 x 128, on 132 multiprocessors, 16 MiB
 * at most. Measured. */
enum { TILE_SIDE = 128, SUM_BYTES = 4, MULTIPROCESSORS = 132 };
static const double sums_most = 16 * MIB;

/* The same in groups: tiles side by side, and the multiprocessors that they fill. Measured: of 42
 * passes of four networks in 32 bit 10 took exactly so many parts, and 20 others between a sixth
 * and three times as many. */
enum { GROUP_TILE = 64, GROUP_MULTIPROCESSORS = MULTIPROCESSORS / 2 };

enum { IMAGE_CHANNELS_MOST = 4, IMAGE_TAPS_MOST = 9, IMAGE_NARROW_MOST = 16 }; /* measured */

/* One tap: positions of which the weight's gradient needs a multiple; channels from which on copies
 * are always, and mostly never, made. Measured. */
enum { POINTWISE_POSITIONS = 8, POINTWISE_WIDE = 256, POINTWISE_NARROW = 64 };

/* Of the forward pass in 32 bit, where the output has twice as many channels as the input: the most
 * channels of that. Measured. */
enum { DOUBLING_MOST = 64, HALVED_POSITIONS = 3 };

static double round_up(double x, double step)
{
    return ceil(x / step) * step;
}

static double fill_of(const struct convolution *conv)
{
    return conv->half ? FILL_HALF : FILL_SINGLE;
}

/* Returns by what factor a map grows when its channels are filled up. */
static double fill_factor(const struct convolution *conv, double channels)
{
    double groups = conv->groups > 1 ? conv->groups : 1, width = channels / groups;
    if (channels <= 0)
        return 1;
    if (groups > 1)
        return width >= FILL_GROUP_FROM ? round_up(width, FILL_GROUP) / width : 1;
    return round_up(channels, fill_of(conv)) / channels;
}

/* Copies of the input, the output and the weight. */
struct copies {
    double input, output, weight;
};

static struct copies copies_of(const struct convolution *conv)
{
    double input = fill_factor(conv, conv->in_channels),
           output = fill_factor(conv, conv->out_channels);
    return (struct copies){
        conv->input * input, conv->output * output, conv->weight * input * output};
}

static double sum_copies(struct copies copies)
{
    return copies.input + copies.output + copies.weight;
}

static double weight_sums(const struct convolution *conv)
{
    double in = round_up(conv->in_channels, fill_of(conv)),
           out = round_up(conv->out_channels, fill_of(conv));
    double tile = fmin(in, TILE_SIDE) * fmin(out, TILE_SIDE) * SUM_BYTES;
    double tiles = conv->taps * ceil(in / TILE_SIDE) * ceil(out / TILE_SIDE);
    if (conv->pass != CONV_WEIGHT_GRADIENT || tiles <= 0)
        return 0;
    double parts = floor(MULTIPROCESSORS / tiles);
    if (conv->half) /* one of the parts is the result itself */
        return fmin(fmax(parts - 1, 0) * tiles * tile, sums_most);
    return fmin((parts > 0 ? parts * tiles : MULTIPROCESSORS) * tile, sums_most);
}

/* The sums in groups; `weight`: bytes of one sum. In 16 bit, and in wide groups, the copies alone
 * come nearer to what trainings take. */
static double group_sums(const struct convolution *conv, double weight)
{
    double width = conv->in_channels / conv->groups * fill_factor(conv, conv->in_channels);
    double tiles = ceil(conv->groups * width / GROUP_TILE);
    if (conv->pass != CONV_WEIGHT_GRADIENT || conv->half || tiles <= 0 || width > GROUP_TILE)
        return 0;
    return fmin(fmax(floor(GROUP_MULTIPROCESSORS / tiles), 1) * weight, sums_most);
}

static double pointwise_workspace(const struct convolution *conv, double copies)
{
    double least = fmin(conv->in_channels, conv->out_channels);
    if (conv->in_positions != conv->out_positions)
        return copies;
    if (conv->pass != CONV_WEIGHT_GRADIENT || fmod(conv->in_positions, POINTWISE_POSITIONS) == 0)
        return 0;
    return least >= POINTWISE_WIDE ? copies : least >= POINTWISE_NARROW ? copies / 2 : 0;
}

static double image_workspace(const struct convolution *conv, struct copies copies, double sums)
{
    bool forward = conv->pass == CONV_FORWARD;
    bool patches = conv->taps * conv->out_positions <= conv->in_positions;
    if (conv->taps <= IMAGE_TAPS_MOST)
        return forward || !conv->half ? 0 : sum_copies(copies) + sums;
    if (patches || conv->out_channels <= IMAGE_NARROW_MOST) {
        copies.input = patches && !conv->half ? 0 : copies.input;
        return forward ? 0 : sum_copies(copies) + sums;
    }
    if (forward && !conv->half)
        copies.input = conv->input; /* its channels are filled up while they are read */
    return sum_copies(copies) + sums;
}

/* Tests whether the forward pass writes the output in its place. */
static bool writes_in_place(const struct convolution *conv)
{
    bool halves = conv->in_positions >= HALVED_POSITIONS * conv->out_positions;
    return conv->pass == CONV_FORWARD && !conv->half && conv->groups <= 1 &&
           conv->in_channels > 0 && conv->out_channels == 2 * conv->in_channels &&
           conv->in_channels <= DOUBLING_MOST && (halves || conv->in_channels == DOUBLING_MOST);
}

double workspace_of(const struct convolution *conv)
{
    struct copies copies = copies_of(conv);
    double sums = conv->groups > 1 ? group_sums(conv, copies.weight) : weight_sums(conv);
    if (conv->groups > 1 && conv->groups == conv->in_channels)
        return 0;
    if (conv->groups <= 1 && conv->taps == 1)
        return pointwise_workspace(conv, sum_copies(copies) + sums);
    if (conv->groups <= 1 && conv->in_channels > 0 && conv->in_channels <= IMAGE_CHANNELS_MOST)
        return image_workspace(conv, copies, sums);
    if (writes_in_place(conv))
        copies.output = 0;
    return sum_copies(copies) + sums;
}

/* A hash of both numbers: the mixer of SplitMix64. */
double workspace_variant(uint32_t variant, size_t i)
{
    if (variant == 0)
        return 1;
    uint64_t x = ((uint64_t)variant << 32) + i + 1;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return 1 + WORKSPACE_CHANGE_MAX * (2 * (double)(x >> 32) / UINT32_MAX - 1);
}
