/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's fake tensors, as the RAD thesis compares with them (chapter 5): the most that lives at
 * once over one forward and backward pass, and nothing else. It is kept so, as a baseline.
 * colloc_export runs the model; here is only its figure.
 */
#include <inttypes.h>

#include "estimator/estimator_table.h"

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    const struct fake_peak *peak = request->export ? &request->export->fake_peak : NULL;
    struct count batch = estimate_batch(request);
    if (!peak || peak->batch == 0)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "needs the model itself (colloc estimate --pytorch), or an export made with --with-fake");
    if (batch.value != peak->batch)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "the export holds the figure of batch %" PRId64 " alone: export again for %" PRId64,
            peak->batch, batch.value);
    ret_estimate->bytes = reading_of((double)peak->bytes);
    if (peak->computed)
        estimate_note(ret_estimate, 0,
            "does not run on fake tensors: a line through passes on the CPU at batch 2 and 4");
    return estimate_note(ret_estimate, 0,
        "tensors of forward and backward alone: no CUDA context, no optimizer: too low");
}

const struct estimator estimator_faketensor = {
    "faketensor", "PyTorch's fake tensors: needs the model or its export", run};
