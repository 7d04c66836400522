/* SPDX-License-Identifier: Apache-2.0 */
/* All or nothing: the quantiles of an estimate with kernels are those of trainings of which each
 * convolution's kernel was known. */
#include "estimator/physics/known_kernels.h"

#include <errno.h>
#include <stdlib.h>

#include "estimator/physics/allocator_replay.h"
#include "model/export_question.h"

/* Returns the workspace of a pass; -1: not known. */
static double bytes_of_conv(
    const struct estimate_request *request, const struct export_conv *conv, int64_t batch)
{
    struct conv_question question;
    int64_t bytes;
    switch (export_question(request->export, conv, batch, &question)) {
    case KERNEL_OF_PYTORCH:
        return 0;
    case KERNEL_OF_CUDNN:
        return kernel_answers_find(request->kernels, &question, &bytes) ? (double)bytes : -1;
    case KERNEL_NOT_KNOWN:
        break;
    }
    return -1;
}

int known_kernels_find(
    const struct estimate_request *request, struct fault *fault, double **ret_bytes)
{
    const struct export *export = request->export;
    size_t n = export->n_convs;
    *ret_bytes = NULL;
    if (!request->kernels || n == 0 || export->tries_kernels)
        return 0;
    double *bytes = malloc(n * sizeof *bytes);
    if (!bytes)
        return fault_set(fault, ENOMEM, "out of memory");
    int64_t batch = estimate_batch(request).value;
    size_t known = 0;
    while (known < n && (bytes[known] = bytes_of_conv(request, &export->convs[known], batch)) >= 0)
        known++;
    if (known == n)
        *ret_bytes = bytes;
    else
        free(bytes);
    return 0;
}

size_t known_kernels_missing(
    const struct estimate_request *request, size_t most, struct conv_question *ret_questions)
{
    const struct export *export = request->export;
    struct count batch = estimate_batch(request);
    if (!export || !batch.known || export->tries_kernels ||
        allocator_replay_knows_kernels(export, (double)batch.value, request->gpu_kind))
        return 0;
    return export_questions_missing(export, batch.value, request->kernels, most, ret_questions);
}
