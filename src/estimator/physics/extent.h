/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of each layer's output, per sample: from the shape in the text or, if a printed module
 * shows none, from the constructor's arguments and the sequence length.
 */
#ifndef COLLOC_PHYSICS_EXTENT_H
#define COLLOC_PHYSICS_EXTENT_H

#include "estimator/estimator.h"
#include "model/model.h"

struct extent {
    double elements; /* above 0, or the whole extent is EXTENT_UNKNOWN */
    double first, last;
};

#define EXTENT_UNKNOWN ((struct extent){0})

static inline bool extent_is_known(struct extent extent)
{
    return extent.elements != 0;
}

/* Tokens per sample of a network that does not read tokens, or whose number of tokens is not
 * known. */
#define SEQUENCE_UNKNOWN 0

/* The properties of one model that decide all its extents. */
struct extent_context {
    const struct model *model;
    double sequence;       /* tokens per sample, or SEQUENCE_UNKNOWN */
    double shown_sequence; /* tokens in the printed shapes, or SEQUENCE_UNKNOWN */
    bool from_arguments;   /* no shapes in the text */
    bool is_longest;       /* `sequence` is not given: it is the longest that the network takes */
};

/* Prepares the context. Returns 0; or ESTIMATE_UNKNOWN, with a text in *ret_why, if the text has no
 * shapes and they do not follow from anything else. */
int extent_context_init(const struct estimate_request *request, struct extent_context *ret_context,
    const char **ret_why);

/* Returns the extent of a layer's output. `before`: of its input, as far as it is known. */
struct extent extent_of(const struct extent_context *context, size_t layer, struct extent before);

/* Returns whether `scale` holds one number for each channel of `map`, as squeeze-and-excitation
 * multiplies a map by. */
bool extent_is_scale_of(struct extent scale, struct extent map);

#endif
