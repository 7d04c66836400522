/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles of an estimate by split conformal prediction. Their source are errors of networks whose
 * whole family was left out of the fit: log ratios above the context, each divided by the spread of
 * similar estimates (residual.h). calibration.inc, made by scripts/fit-estimators, has one row for
 * each kind of evidence.
 */
#ifndef COLLOC_PHYSICS_QUANTILE_H
#define COLLOC_PHYSICS_QUANTILE_H

#include "estimator/estimator.h"
#include "estimator/physics/physics.h"

/* Sets the three quantiles from bytes and evidence. They stay invalid for evidence that is not
 * calibrated. */
void quantiles_set(struct estimate *estimate, const struct physics *physics);

#endif
