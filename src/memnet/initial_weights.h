/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights, drawn from PyTorch's distributions. Internal to the component. */
#ifndef COLLOC_MEMNET_INITIAL_WEIGHTS_H
#define COLLOC_MEMNET_INITIAL_WEIGHTS_H

#include "estimator/gpumemnet/gpumemnet_layout.h"
#include "trace/seeded_random.h"

/* Draws all weights of the layout. */
void initial_weights_draw(
    const struct gpumemnet_layout *layout, struct seeded_random *random, float *ret_weights);

#endif
