/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What physics leaves out, learned: the logarithm of measured to physical memory (both above the
 * context) as a linear function of ratios, so that it has no scale and stays near 0. And how far
 * from that a network of its kind usually is, by the same ratios. Coefficients: graph_weights.inc
 * and spread_weights.inc, made by scripts/fit-estimators from data/memory.
 */
#ifndef COLLOC_PHYSICS_RESIDUAL_H
#define COLLOC_PHYSICS_RESIDUAL_H

#include "estimator/physics/physics.h"

enum { RESIDUAL_FEATURES = 20 };

void residual_features(
    const struct physics *physics, double ret_features[static RESIDUAL_FEATURES]);

/* Factor on what physics says above the context: within 1/2 and 2. */
double residual_factor(const struct physics *physics);

/* How large the logarithm of what is left usually is, for an estimate of this evidence: within
 * 0.004 and 0.12. */
double residual_spread(const struct physics *physics, enum evidence evidence);

#endif
