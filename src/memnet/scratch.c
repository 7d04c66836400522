/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one training step, as a stack of floats: see scratch.h. */
#include "memnet/scratch.h"

#include <errno.h>
#include <stdlib.h>

int scratch_reserve(struct scratch *scratch, size_t size)
{
    scratch->used = 0;
    if (size <= scratch->size)
        return 0;
    free(scratch->memory);
    scratch->memory = malloc(size * sizeof *scratch->memory);
    scratch->size = scratch->memory ? size : 0;
    return scratch->memory ? 0 : -ENOMEM;
}

void scratch_fini(struct scratch *scratch)
{
    free(scratch->memory);
    *scratch = (struct scratch){.blas = scratch->blas};
}

float *scratch_alloc(struct scratch *scratch, size_t n)
{
    if (n > scratch->size - scratch->used)
        abort();
    scratch->used += n;
    return scratch->memory + scratch->used - n;
}
