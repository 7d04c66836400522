/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes to the user about a physical estimate: what was assumed, what is not known, and how far
 * the estimate can be off for that. Each function adds notes; none changes a number.
 */
#ifndef COLLOC_PHYSICS_PHYSICS_NOTES_H
#define COLLOC_PHYSICS_PHYSICS_NOTES_H

#include "estimator/physics/physics.h"

/* Of a summary: what makes its estimate uncertain. */
void physics_note_summary(
    const struct tape *tape, const struct estimate_request *request, struct estimate *ret_estimate);

/* Of an export: where it and the task differ. */
void physics_note_export(const struct estimate_request *request, const struct physics *physics,
    struct estimate *ret_estimate);

/* Writes where the workspaces of an export's convolutions come from (estimate.kernels). `is_asked`:
 * from request->kernels. */
void physics_note_kernels(const struct estimate_request *request, const struct physics *physics,
    bool is_asked, struct estimate *ret_estimate);

/* Of a compiled step: what it is like in the pool, and what is not known. */
void physics_note_compiled(const struct estimate_request *request,
    const struct footprint *footprint, struct estimate *ret_estimate);

/* Of several GPUs: what was assumed. */
void physics_note_division(const struct estimate_request *request, struct estimate *ret_estimate);

/* Returns the kind of evidence, which decides the quantiles. */
enum evidence physics_evidence(
    const struct estimate_request *request, const struct physics *physics);

#endif
