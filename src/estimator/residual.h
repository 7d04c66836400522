/*
 * What physics leaves out, learned: the logarithm of measured to physical memory (both above the context) as a linear
 * function of ratios, so that it has no scale and stays near 0. Coefficients: graph_weights.inc, made by
 * scripts/fit-estimators from data/memory.
 */
#ifndef COLLOC_ESTIMATOR_RESIDUAL_H
#define COLLOC_ESTIMATOR_RESIDUAL_H

#include "estimator/physics.h"

enum { RESIDUAL_FEATURES = 18 };

void residual_features(const struct physics *physics, double ret_features[static RESIDUAL_FEATURES]);

/* Factor on what physics says above the context: within 1/2 and 2. */
double residual_factor(const struct physics *physics);

#endif
