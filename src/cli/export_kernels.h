/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to an export what cuDNN takes for its convolutions: python/colloc_export/kernels.py. */
#ifndef COLLOC_CLI_EXPORT_KERNELS_H
#define COLLOC_CLI_EXPORT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct kernel_source {
    const char *interpreter; /* that has the task's PyTorch; NULL: python3 */
    const char *gpu;         /* without a GPU: whose kept answers serve; NULL: not given */
    int64_t limit_us;
};

/*
 * Asks cuDNN on the first GPU of this machine, or takes answers that were kept.
 *
 * text: an export of `size` bytes, which is replaced; the caller frees it
 *
 * Returns 0 or a fault, as python_ask.
 */
int export_kernels_add(
    const struct kernel_source *source, struct fault *fault, char **text, size_t *size);

#endif
