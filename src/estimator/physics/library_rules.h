/* SPDX-License-Identifier: Apache-2.0 */
/* The behaviour of published networks that a summary does not show, by the names of their
 * classes. */
#ifndef COLLOC_PHYSICS_LIBRARY_RULES_H
#define COLLOC_PHYSICS_LIBRARY_RULES_H

#include <stdbool.h>

#include "model/model.h"

/* Returns whether the model's own loss turns 16-bit logits into 32 bit before it uses them. */
bool library_raises_logits(const struct model *model);

/* Returns whether dropout between the layers has an effect in training. */
bool library_drops_within(const struct model *model);

/* Returns whether the network calls its activations as functions, whose results autograd keeps. */
bool library_calls_activations(const struct model *model);

/* Returns whether a block of this class adds its input to the result of its branch. */
bool library_adds_residual(struct span type);

/* Returns whether a block of this class multiplies its result by a gate: autograd keeps both. */
bool library_is_gated(struct span type);

/* Returns whether a module of this class is attention by its name. */
bool library_is_attention(struct span type);

/* Returns whether attention of this class computes scores, softmax and product one by one. */
bool library_writes_scores(struct span type);

/* Returns whether a convolution of this class standardises its weight at each step: the
 * standardised copy is kept for the backward pass. */
bool library_standardizes_weight(struct span type);

/* Returns whether a residual block with such a convolution multiplies the activation that it begins
 * with by a number. */
bool library_scales_branch(struct span type);

/* Returns whether attention of this class uses its projections as functions, within windows. */
bool library_uses_windows(struct span type);

/* Returns whether attention of this class compares queries and keys by their cosine. */
bool library_compares_by_cosine(struct span type);

#endif
