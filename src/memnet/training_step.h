/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One training step: a batch forward through the network of a layout, cross-entropy, and backward.
 * Weights and gradients are arrays of the layout.
 */
#ifndef COLLOC_MEMNET_TRAINING_STEP_H
#define COLLOC_MEMNET_TRAINING_STEP_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_layout.h"
#include "memnet/scratch.h"

/* A task as scaled input of a network. */
struct example {
    float values[GPUMEMNET_VALUES];
    float *tokens; /* n_tokens x TOKEN_SIZE */
    size_t n_tokens;
    int class;
};

struct batch {
    const struct example *const *rows;
    size_t n; /* at least 2, for batch norm */
};

/*
 * Computes the gradients and the mean loss.
 *
 * weights:   the running means of batch norms are updated
 * gradients: all zero on entry
 *
 * Returns 0 or -ENOMEM.
 */
int training_step_run(const struct gpumemnet_layout *layout, float *weights,
    const struct batch *batch, struct scratch *scratch, float *gradients, double *ret_loss);

#endif
