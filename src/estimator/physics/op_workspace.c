/* SPDX-License-Identifier: Apache-2.0 */
/* A tape knows the size of a weight, not its groups: these are found from the channels of the maps
 * and the window. */
#include "estimator/physics/op_workspace.h"

#include <math.h>
#include <stdbool.h>

/* Returns the groups of a convolution of `channels`, by the size of its weight. */
static double groups_of(const struct op *op, double channels, double out_channels)
{
    if (op->depthwise)
        return channels;
    double dense = channels * out_channels * op->window;
    double groups = op->weight > 0 ? round(dense / op->weight) : 1;
    bool divides = groups > 1 && fmod(channels, groups) == 0 && fmod(out_channels, groups) == 0;
    return divides ? groups : 1;
}

double op_workspace(const struct tape *tape, size_t i, enum conv_pass pass, uint32_t variant)
{
    const struct op *op = &tape->ops[i];
    bool has_input = op->inputs[0] != TAPE_NONE;
    if (op->kind != LAYER_CONV ||
        (pass == CONV_INPUT_GRADIENT && (!has_input || tape->tensors[op->inputs[0]].is_data)))
        return 0;
    double element = tape_is_half(tape) ? HALF_BYTES : SINGLE_BYTES, scale = element * tape->batch;
    const struct tensor none = {0}, *out = &tape->tensors[op->output],
                        *in = has_input ? &tape->tensors[op->inputs[0]] : &none;
    double channels = op->turned ? in->last : in->first;
    struct convolution convolution = {.input = in->elements * scale,
        .output = out->elements * scale,
        .weight = op->weight * element,
        .in_channels = channels,
        .out_channels = out->first,
        .in_positions = channels > 0 ? in->elements / channels : 0,
        .out_positions = out->first > 0 ? out->elements / out->first : 0,
        .taps = op->window,
        .groups = groups_of(op, channels, out->first),
        .half = tape_is_half(tape),
        .pass = pass};
    return workspace_of(&convolution) * workspace_variant(variant, i * CONV_PASSES + pass);
}
