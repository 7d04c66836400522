/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions of an export PyTorch tries kernels for, with cudnn.benchmark, and what these
 * take meanwhile. */
#ifndef COLLOC_PHYSICS_TRIED_KERNELS_H
#define COLLOC_PHYSICS_TRIED_KERNELS_H

#include "estimator/estimator.h"

/*
 * Finds the passes of convolutions that are the first of their kind.
 *
 * ret_tries: one for each of the export's convs, to be freed; NULL: the training tries none, or the
 *            file does not say what cuDNN is asked
 *
 * Returns 0 or -ENOMEM with a fault.
 */
int tried_kernels_find(
    const struct estimate_request *request, struct fault *fault, bool **ret_tries);

/* What the largest kernel takes while it is tried. */
struct tried_workspace {
    struct reading bytes;
    bool is_seen; /* trainings of this type were seen to take it; no others were */
};

/* Finds it by the shapes. `batch`: one that the export allows. It is not valid where the file does
 * not say what cuDNN is asked, or does so of other maps than images. */
struct tried_workspace tried_workspace_of(const struct export *export, int64_t batch);

#endif
