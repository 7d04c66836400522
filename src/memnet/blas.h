/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS, loaded when training begins: its threads start with the library, which every other
 * subcommand would pay for.
 */
#ifndef COLLOC_MEMNET_BLAS_H
#define COLLOC_MEMNET_BLAS_H

#include <cblas.h>

#include "base/fault.h"

struct blas {
    void *library;
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_sdot) *sdot;
};

/*
 * One thread, so that sums have one order; say so before anything else loads OpenBLAS. 0, or
 * -ENOENT with a fault. Ended by blas_close after 0.
 */
int blas_open(struct fault *fault, struct blas *ret_blas);
void blas_close(struct blas *blas);

#endif
