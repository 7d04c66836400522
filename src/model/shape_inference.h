/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of all layers of a printed network, which shows none. Internal to this component. */
#ifndef COLLOC_MODEL_SHAPE_INFERENCE_H
#define COLLOC_MODEL_SHAPE_INFERENCE_H

#include "model/shape_walk.h"

/*
 * Goes through the layers and finds what each puts out.
 *
 * walk: holds the model, as `current` the network's input, and as `made` a zeroed map for each
 *       layer; gets the rest
 */
void shape_inference_run(struct shape_walk *walk);

#endif
