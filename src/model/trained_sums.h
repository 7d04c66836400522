/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers are trained, where a text has the number of trained parameters alone. */
#ifndef COLLOC_MODEL_TRAINED_SUMS_H
#define COLLOC_MODEL_TRAINED_SUMS_H

#include "model/model.h"

/*
 * Marks each layer of a model as trained or not, by the first usual way of fine-tuning in which
 * exactly `count` parameters are trained: the last layers, the last blocks of a list, adapters,
 * normalisations, biases, or vectors outside of the layers (prefixes, prompts).
 *
 * model: its totals are known; where none fits, its layers' marks are of no meaning
 *
 * Returns whether one fits.
 */
bool trained_sums_find(struct model *model, int64_t count);

/* Marks layers from the end as trained until they have `count` parameters, and the others as not
 * trained: a new head on a network that is kept. Returns whether they have exactly as many. */
bool trained_sums_take_last(struct model *model, int64_t count);

#endif
