#include "estimator/quantile.h"

#include <math.h>

struct row {
    double p50, p90, p99; /* log ratio of measured to estimated, above the context */
    int n;                /* errors that it rests on; 0: not calibrated */
};

static const struct row rows[EVIDENCE_KINDS][2] = {
#include "estimator/calibration.inc"
};

static struct reading at(const struct estimate *estimate, double context_bytes, double log_ratio)
{
    return reading_of(context_bytes + (estimate->bytes.value - context_bytes) * exp(log_ratio));
}

void quantiles_set(struct estimate *estimate, double context_bytes, bool convolves)
{
    const struct row *row = &rows[estimate->evidence][convolves];
    if (row->n == 0 || !estimate->bytes.valid || estimate->bytes.value <= context_bytes)
        return;
    estimate->p50_bytes = at(estimate, context_bytes, row->p50);
    estimate->p90_bytes = at(estimate, context_bytes, row->p90);
    estimate->p99_bytes = at(estimate, context_bytes, row->p99);
}
