/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor parallelism: one process's part of the products in each block. */
#ifndef COLLOC_PHYSICS_TENSOR_SPLIT_H
#define COLLOC_PHYSICS_TENSOR_SPLIT_H

#include "estimator/physics/tape.h"

/*
 * Turns the tape of a network into that of one of `degree` processes that divide its products.
 *
 * ret_divided: the parameters that are divided, before that; 0: none are
 *
 * Returns 0 or -ENOMEM.
 */
int tensor_split(struct tape *tape, const struct model *model, int degree, double *ret_divided);

#endif
