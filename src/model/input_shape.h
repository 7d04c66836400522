/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes for a printed module, which shows none: from the shape of one sample, which the user
 * names, and the constructors' arguments.
 */
#ifndef COLLOC_MODEL_INPUT_SHAPE_H
#define COLLOC_MODEL_INPUT_SHAPE_H

#include "model/model.h"

/* The shape of one sample of an image, a volume or a series: channels, then places. */
struct input_shape {
    int rank; /* 2 to 4 */
    int64_t size[MODEL_RANK_MAX];
};

/* Parses "3x224x224". Returns 0, or -EINVAL with a fault that names the form or the limit. */
int input_shape_parse(const char *text, struct fault *fault, struct input_shape *ret_shape);

/*
 * Sets the shapes of all layers that follow from the input's, and the model's sums. A model that
 * has shapes, or reads tokens, is not changed, and gets a warning.
 *
 * Returns 0; or with a fault -ERANGE (a sum is beyond 64 bits) or -ENOMEM.
 */
int model_set_input(struct model *model, const struct input_shape *input, struct fault *fault);

#endif
