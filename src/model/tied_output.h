/* SPDX-License-Identifier: Apache-2.0 */
/* An output layer that shares its weights with the embedding. */
#ifndef COLLOC_MODEL_TIED_OUTPUT_H
#define COLLOC_MODEL_TIED_OUTPUT_H

#include "model/model.h"

/*
 * Takes the parameters of a printed module's output layer out of the count if a printed total shows
 * that they are the embedding's; adds a warning if the text leaves it open. To be called before the
 * sums over the layers.
 */
void tied_output_find(struct model *model);

#endif
