/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of an answer. A question about a task has no other result and writes nothing else: a
 * pass has one answer, which each try fills again; an explanation has its own, and so leaves the
 * core as it is.
 */
#include "core/placement_answer.h"

#include <errno.h>
#include <stdlib.h>

int placement_reserve(struct placement *placement, int n_gpus)
{
    size_t n = (size_t)n_gpus + 1;
    int *gpus = realloc(placement->gpus, n * sizeof *gpus);
    if (gpus)
        placement->gpus = gpus;
    struct verdict *verdicts = realloc(placement->verdicts, n * sizeof *verdicts);
    if (verdicts)
        placement->verdicts = verdicts;
    uint64_t *set_aside = realloc(placement->set_aside, n * sizeof *set_aside);
    if (set_aside)
        placement->set_aside = set_aside;
    return gpus && verdicts && set_aside ? 0 : -ENOMEM;
}

void placement_fini(struct placement *placement)
{
    free(placement->gpus);
    free(placement->verdicts);
    free(placement->set_aside);
}
