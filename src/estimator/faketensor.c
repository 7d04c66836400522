/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimator faketensor, a baseline of the RAD thesis (chapter 5): the peak of all tensors that
 * live at the same time in one forward and backward pass. It leaves out the CUDA context, the
 * optimizer and the allocator's waste, so it is always too low. colloc_export runs the model on
 * PyTorch's fake tensors; this file returns its figure.
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
