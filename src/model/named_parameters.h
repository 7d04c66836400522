/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of parameters beside a printed module, which say whether each is trained. */
#ifndef COLLOC_MODEL_NAMED_PARAMETERS_H
#define COLLOC_MODEL_NAMED_PARAMETERS_H

#include "model/model.h"

/* Tests whether a line is of such a list: "encoder.layers.0.weight torch.Size([8, 8]) False". */
bool named_parameters_has(struct span line);

/*
 * Sets `trainable` of the layers that the text lists. A layer is trained if one of its parameters
 * is. Only a printed module has names.
 *
 * Returns whether a layer was listed, or -ENOMEM.
 */
int named_parameters_mark(struct model *model, struct span text);

#endif
