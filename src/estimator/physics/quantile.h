/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles of an estimate by split conformal prediction: the errors, as log ratios above the
 * context, of networks whose whole family was left out when the coefficients were learned, each
 * over the spread that is usual for its like (residual.h). One row for each kind of evidence, in
 * calibration.inc, made by scripts/fit-estimators.
 */
#ifndef COLLOC_PHYSICS_QUANTILE_H
#define COLLOC_PHYSICS_QUANTILE_H

#include "estimator/estimator.h"
#include "estimator/physics/physics.h"

/* Sets the three quantiles from bytes and evidence; leaves them not valid where nothing was
 * calibrated. */
void quantiles_set(struct estimate *estimate, const struct physics *physics);

#endif
