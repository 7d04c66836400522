/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS, loaded when training begins: loading it starts its threads, which would slow down every
 * other subcommand.
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
 * Loads OpenBLAS with one thread, so that sums have one order. Call it before anything else loads
 * OpenBLAS.
 *
 * Returns 0, ended by blas_close; or -ENOENT with a fault.
 */
int blas_open(struct fault *fault, struct blas *ret_blas);
void blas_close(struct blas *blas);

#endif
