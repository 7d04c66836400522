/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers of a printed module are trained, and in how many bits the others are stored. */
#ifndef COLLOC_MODEL_TRAINED_LAYERS_H
#define COLLOC_MODEL_TRAINED_LAYERS_H

#include "model/model.h"

/*
 * Sets weight_bits of all layers and, where the text shows adapters or lists parameters,
 * `trainable`. To be called before the sums over the layers.
 *
 * text: all of it, also what is before the module: PEFT's line of totals.
 *
 * Returns 0 or -ENOMEM.
 */
int trained_layers_find(struct model *model, struct span text);

/* Sets model->parameters_trained and model->trained_is_open. To be called after the sums. */
void trained_layers_sum_up(struct model *model);

#endif
