/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one step of training: taken piece by piece, given back all at once or down to a mark.
 */
#ifndef COLLOC_MEMNET_SCRATCH_H
#define COLLOC_MEMNET_SCRATCH_H

#include <stddef.h>

#include "memnet/blas.h"

struct scratch {
    const struct blas *blas; /* for those who work on it */
    float *memory;
    size_t used, size; /* in floats */
};

/* Empties it and makes room for so many floats. 0 or -ENOMEM. */
int scratch_reserve(struct scratch *scratch, size_t size);
void scratch_fini(struct scratch *scratch);

/* Not set to anything. Asking for more than was reserved ends the program. */
float *scratch_take(struct scratch *scratch, size_t n);

#endif
