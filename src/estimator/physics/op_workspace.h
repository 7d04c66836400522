/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch memory of a convolution's kernels, as an operation of a tape describes it. */
#ifndef COLLOC_PHYSICS_OP_WORKSPACE_H
#define COLLOC_PHYSICS_OP_WORKSPACE_H

#include <stdint.h>

#include "estimator/physics/tape.h"
#include "estimator/physics/workspace.h"

/* Returns the bytes of the workspace of operation `i` in this pass; 0: it is no convolution, or
 * computes nothing there. `variant`: of workspace.h. */
double op_workspace(const struct tape *tape, size_t i, enum conv_pass pass, uint32_t variant);

#endif
