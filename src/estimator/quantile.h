/*
 * Quantiles of an estimate by split conformal prediction: the errors, as log ratios above the context, of networks
 * whose whole family was left out when the coefficients were learned. Two rows for each kind of evidence, without and
 * with convolutions, whose workspaces are far less sure than all else; in calibration.inc, made by
 * scripts/fit-estimators.
 */
#ifndef COLLOC_ESTIMATOR_QUANTILE_H
#define COLLOC_ESTIMATOR_QUANTILE_H

#include <stdbool.h>

#include "estimator/estimator.h"

/* Sets the three quantiles from bytes and evidence; leaves them not valid where nothing was calibrated. */
void quantiles_set(struct estimate *estimate, double context_bytes, bool convolves);

#endif
