/* SPDX-License-Identifier: Apache-2.0 */
/* The workspaces of an export's convolutions, as cuDNN answered about them (kernels/). */
#ifndef COLLOC_PHYSICS_KNOWN_KERNELS_H
#define COLLOC_PHYSICS_KNOWN_KERNELS_H

#include "estimator/estimator.h"

/*
 * Looks up the convolutions of the request's export in its answers.
 *
 * ret_bytes: of each of export->convs, to be freed; NULL: not all are known, so that the rules of
 *            workspace.h serve
 *
 * Returns 0 or -ENOMEM with a fault.
 */
int known_kernels_find(
    const struct estimate_request *request, struct fault *fault, double **ret_bytes);

/*
 * Collects the questions whose answers would improve the estimate, each once.
 *
 * most: that fit into ret_questions
 *
 * Returns how many: 0 also where the export has the kernels of this GPU, or its training tries them
 * (cudnn.benchmark), or it does not say what cuDNN is asked.
 */
size_t known_kernels_missing(
    const struct estimate_request *request, size_t most, struct conv_question *ret_questions);

#endif
