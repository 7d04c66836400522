/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of an encoder that work on each position alone, for LANES positions at a time. Sums
 * have the order that they have for one position, so the results are the same. */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_PLACES_H
#define COLLOC_GPUMEMNET_GPUMEMNET_PLACES_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_lanes.h"
#include "estimator/gpumemnet/gpumemnet_layout.h"

/*
 * Computes W x + b.
 *
 * x:      layout->in rows of LANES
 * stride: floats from one row of the result to the next
 * ret_y:  layout->out rows
 */
void places_project(const float *weights, const struct linear_layout *layout, const float *x,
    size_t stride, float *ret_y);

/*
 * Computes what follows the attention: projection, feed-forward layers, and the norms.
 *
 * mixed: what attention has put out, rows of LANES
 * x:     the input of the layer, rows of LANES; replaced by its output
 */
void places_finish(
    const float *weights, const struct encoder_layer_layout *layer, const float *mixed, float *x);

#endif
