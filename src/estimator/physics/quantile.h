/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles of an estimate by split conformal prediction. Their source are the errors of networks
 * whose whole family was left out of the fit: logarithms of measured to estimated memory, in units
 * of quantile_scale. calibration.inc, made by scripts/fit-estimators, has a row for each kind of
 * evidence and of network.
 */
#ifndef COLLOC_PHYSICS_QUANTILE_H
#define COLLOC_PHYSICS_QUANTILE_H

#include "estimator/estimator.h"
#include "estimator/physics/physics.h"

/* What most multiply-adds of a network are. Workspaces of convolutions are the larger error. */
enum network_kind { NETWORK_CONVOLUTIONS, NETWORK_PRODUCTS, NETWORK_KINDS };

enum network_kind network_kind_of(const struct physics *physics);

/* Returns "convolutions" or "products". */
const char *network_kind_name(enum network_kind kind);

/*
 * Returns the unit in which the errors of such estimates are counted, a logarithm. It is 1 with two
 * exceptions. Of an export it grows with the range of slightly changed replays, since what is left
 * is which segments the allocator takes. For a doubtful summary it is the share that is not
 * the context, since layers that are missing may be many times those that are there.
 */
double quantile_scale(const struct physics *physics, enum evidence evidence);

/* Sets the three quantiles from bytes and evidence. They stay invalid for evidence that is not
 * calibrated. */
void quantiles_set(struct estimate *estimate, const struct physics *physics);

#endif
