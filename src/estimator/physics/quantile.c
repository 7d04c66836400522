/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles of an estimate: context + (estimate - context) * exp(q * spread), where q is a row of
 * calibration.inc (in usual spreads) and the spread that of an estimate like this one
 * (residual.h).
 *
 * Example: with q = 1.65 for p90 and a spread of 0.02, p90 lies 3.3 % above the estimate.
 */
#include "estimator/physics/quantile.h"

#include <math.h>

#include "estimator/physics/residual.h"

struct row {
    double p50, p90,
        p99; /* log ratio of measured to estimated, above the context, over the usual spread */
    int n;   /* errors that it rests on; 0: not calibrated */
};

static const struct row rows[EVIDENCE_KINDS] = {
#include "estimator/physics/calibration.inc"
};

static struct reading quantile_at(
    const struct estimate *estimate, double context_bytes, double log_ratio)
{
    return reading_of(context_bytes + (estimate->bytes.value - context_bytes) * exp(log_ratio));
}

/* A script's export knows as much of the kernels as any export: its errors are taken for theirs. */
static enum evidence calibrated_as(enum evidence evidence)
{
    return evidence == EVIDENCE_SCRIPT ? EVIDENCE_EXPORT : evidence;
}

void quantiles_set(struct estimate *estimate, const struct physics *physics)
{
    const struct row *row = &rows[calibrated_as(estimate->evidence)];
    double context = physics->context_bytes, spread = residual_spread(physics, estimate->evidence);
    if (row->n == 0 || !estimate->bytes.valid || estimate->bytes.value <= context)
        return;
    estimate->p50_bytes = quantile_at(estimate, context, row->p50 * spread);
    estimate->p90_bytes = quantile_at(estimate, context, row->p90 * spread);
    estimate->p99_bytes = quantile_at(estimate, context, row->p99 * spread);
}
