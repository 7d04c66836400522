/* SPDX-License-Identifier: Apache-2.0 */
/* The estimator summary: the sum of the sizes that torchinfo and torchsummary print below their
 * layers, with those of input and activations scaled to the requested batch. A baseline: it
 * includes neither the CUDA context nor the optimizer. */

#include "estimator/estimator_table.h"

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    const struct model *model = request->model;
    struct count batch = estimate_batch(request);
    if (!model)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, "summary needs a model summary");
    if (!model->printed.pass_bytes.valid || !model->printed.params_bytes.valid)
        return estimate_note(
            ret_estimate, ESTIMATE_UNKNOWN, "the summary prints no sizes in bytes");
    if (!batch.known)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, ESTIMATE_NO_BATCH);
    double samples = (double)batch.value / (model->batch.known ? (double)model->batch.value : 1);
    double per_batch = model->printed.pass_bytes.value + reading_or(model->printed.input_bytes, 0);
    ret_estimate->bytes = reading_of(samples * per_batch + model->printed.params_bytes.value);
    return 0;
}

const struct estimator estimator_summary = {
    "summary", "the total that the summary itself prints", run};
