/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reserve and the workspace of cuDNN's recurrent layers, from the shape of the stack.
 *
 * A summary shows a recurrent layer as one row with its parameters and its output. Its number of
 * layers and directions follows from them: the search tries stacks until one has that many
 * parameters. The terms of reserve and workspace were read off the requests to the allocator of an
 * H200 for LSTM and GRU of one and two layers (cuDNN 9.19; python/colloc_export/recurrent.py has
 * the same terms).
 *
 * Example: LSTM(64, 64) has 33,280 parameters, 4 gates * 64 units * (64 + 64 + 2). Its output of 64
 * numbers for each step fits one layer in one direction; each unit keeps 5 numbers for each step.
 */
#include "estimator/physics/recurrent.h"

#include <stddef.h>

#include "base/array.h"
#include "base/units.h"

enum {
    LAYERS_MOST = 16,    /* chosen: published stacks have 8 layers at most */
    DIRECTIONS_MOST = 2, /* forward, and backward as well */
    BIASES_MOST = 2,     /* of each gate: PyTorch has one for the input and one for the state */
};

/* Measured (see above): the bytes of a workspace for each direction, and at its end. */
#define SCRATCH_OF_DIRECTION (16 * MIB)
/* Measured with it: bytes at the end of a workspace and of what each sample adds, and copies of the
 * states. */
enum { SCRATCH_ALIGNMENT = 256, SAMPLE_ALIGNMENT = 8, STATE_COPIES = 4 };

struct cell {
    const char *type;
    int gates, reserved, states; /* reserved: units that each unit of the output keeps */
};

static const struct cell cells[] = {{"LSTM", 4, 5, 2}, {"GRU", 3, 6, 1}, {"RNN", 1, 2, 1}};

static const struct cell *cell_of(struct span type)
{
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
        if (span_is(type, cells[i].type))
            return &cells[i];
    return NULL;
}

struct stack {
    double layers, directions, units, biases; /* biases: 2 or 0 of each gate of each unit */
};

static double parameters_of(const struct cell *cell, const struct stack *stack, double inputs)
{
    double each = stack->directions * cell->gates * stack->units;
    return each * (inputs + stack->units + stack->biases) +
           (stack->layers - 1) * each *
               (stack->directions * stack->units + stack->units + stack->biases);
}

/* Finds the stack with this number of parameters. */
static bool find_stack(
    const struct cell *cell, double parameters, double inputs, double width, struct stack *ret)
{
    for (int directions = 1; directions <= DIRECTIONS_MOST; directions++)
        for (int layers = 1; layers <= LAYERS_MOST; layers++)
            for (int biases = 0; biases <= BIASES_MOST; biases += BIASES_MOST) {
                *ret = (struct stack){layers, directions, width / directions, biases};
                if (parameters_of(cell, ret, inputs) == parameters)
                    return true;
            }
    return false;
}

bool recurrent_of(const struct layer *layer, double inputs, struct extent output,
    double element_bytes, struct recurrent *ret)
{
    const struct cell *cell = cell_of(layer->type);
    struct stack stack;
    double parameters = (double)layer->parameters;
    if (!cell || output.last <= 0 || !find_stack(cell, parameters, inputs, output.last, &stack))
        return false;
    double steps = output.elements / output.last,
           both = stack.layers * stack.directions * stack.units;
    double each_step = stack.directions * (cell->gates + 1 + stack.directions) * stack.units +
                       inputs;
    double of_states = cell->states * both * (STATE_COPIES + stack.directions);
    double of_biases = stack.biases * cell->gates * both;
    ret->reserve = (both * cell->reserved + stack.directions * (stack.layers - 1) * stack.units) *
                   steps * element_bytes;
    ret->scratch = (parameters - of_biases) * element_bytes +
                   stack.directions * SCRATCH_OF_DIRECTION + SCRATCH_ALIGNMENT;
    ret->sample_scratch = (steps * each_step + of_states) * element_bytes + SAMPLE_ALIGNMENT;
    return true;
}
