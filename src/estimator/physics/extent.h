/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of what each layer puts out, per sample: from the shape in the text, or, where a printed
 * module shows none, from the constructor's arguments and the length of the sequence.
 */
#ifndef COLLOC_PHYSICS_EXTENT_H
#define COLLOC_PHYSICS_EXTENT_H

#include "estimator/estimator.h"
#include "model/model.h"

struct extent {
    double elements; /* 0: not known */
    double first, last;
};

/* What the extents of one model follow from. */
struct extent_context {
    const struct model *model;
    double sequence;       /* tokens per sample; 0: not a network over tokens, or not known */
    double shown_sequence; /* as the shapes show it; 0: they do not */
    bool from_arguments;   /* no shapes in the text */
};

/* 0, or ESTIMATE_UNKNOWN with *ret_why: the text has no shapes and they do not follow from what
 * else is known. */
int extent_context_init(const struct estimate_request *request, struct extent_context *ret_context,
    const char **ret_why);

/* `before` is what the layer is applied to, as far as known. */
struct extent extent_of(const struct extent_context *context, size_t layer, struct extent before);

/* Returns whether `scale` holds one number for each channel of `map`, as squeeze-and-excitation
 * multiplies a map by. */
bool extent_is_scale_of(struct extent scale, struct extent map);

#endif
