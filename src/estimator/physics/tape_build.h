/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the tape of a training step from the layers of a summary. */
#ifndef COLLOC_PHYSICS_TAPE_BUILD_H
#define COLLOC_PHYSICS_TAPE_BUILD_H

#include "estimator/physics/tape.h"

/*
 * Derives the tape. `request`: has a model and a checked batch. Returns 0, and tape_fini must
 * follow; ESTIMATE_UNKNOWN with the reason in *ret_why; or a fault (-ENOMEM, -ERANGE).
 */
int tape_build(const struct estimate_request *request, struct fault *fault, struct tape *ret_tape,
    const char **ret_why);
void tape_fini(struct tape *tape);

#endif
