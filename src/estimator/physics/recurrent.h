/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recurrent layer as cuDNN runs it: all steps and layers in one operation, which keeps a reserve
 * for backward and takes a workspace in both directions. Sizes as the allocator of an H200 saw them
 * (cuDNN 9.19, LSTM and GRU of two layers; python/colloc_export/recurrent.py has the same terms).
 */
#ifndef COLLOC_PHYSICS_RECURRENT_H
#define COLLOC_PHYSICS_RECURRENT_H

#include <stdbool.h>

#include "estimator/physics/extent.h"
#include "model/model.h"

struct recurrent {
    double reserve;                 /* bytes per sample */
    double scratch, sample_scratch; /* bytes, and bytes per sample */
};

/*
 * Derives layers and directions of a recurrent layer from its parameters, its input's width and its
 * output, and then its memory.
 *
 * Returns false if they cannot be derived.
 */
bool recurrent_of(const struct layer *layer, double inputs, struct extent output,
    double element_bytes, struct recurrent *ret_recurrent);

#endif
