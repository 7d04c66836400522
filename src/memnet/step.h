/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of training: a batch through the network of a layout and back, cross-entropy at the end.
 * Weights and gradients are arrays of the layout.
 */
#ifndef COLLOC_MEMNET_STEP_H
#define COLLOC_MEMNET_STEP_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_layout.h"
#include "memnet/scratch.h"

/* A task as the network sees it, scaled. */
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
 * Fills the gradients (all zero before), moves the running sums of the batch norms in `weights`. 0
 * with the mean loss, or -ENOMEM.
 */
int memnet_step(const struct gpumemnet_layout *layout, float *weights, const struct batch *batch,
    struct scratch *scratch, float *gradients, double *ret_loss);

#endif
