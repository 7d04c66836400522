/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers a training starts from, as PyTorch draws them. Internal to the room. */
#ifndef COLLOC_MEMNET_START_H
#define COLLOC_MEMNET_START_H

#include "estimator/gpumemnet/gpumemnet_layout.h"
#include "trace/random.h"

void start_weights(
    const struct gpumemnet_layout *layout, struct random *random, float *ret_weights);

#endif
