/* SPDX-License-Identifier: Apache-2.0 */
/* What a task is charged for the GPUs that it holds, and how past charges lose weight. */
#ifndef COLLOC_FAIRNESS_CHARGE_H
#define COLLOC_FAIRNESS_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reading.h"

/* Chosen: a suspended task keeps host memory, not GPU memory; small, but not free. */
#define CHARGE_SUSPENDED 0.05

/* A task's part of one GPU. */
struct gpu_use {
    bool is_whole;         /* no other task may share the GPU with it */
    double equal_part;     /* 1 divided by the number of tasks on the GPU, this one included */
    struct reading smact;  /* 0..1, its part of the GPU's SM activity */
    struct reading memory; /* 0..1, its part of the GPU's memory */
    double promised;       /* 0..1, the part of its speed alone that it was promised; 0: none */
};

/*
 * The charge of one GPU for each unit of time: the larger of its part of the SM activity and its
 * part of the memory, and no less than the part of its speed alone that it was promised: others
 * are kept off for that. The whole GPU, if no other task may share it; an equal part, if nothing is
 * known (unknown is never free).
 *
 * Returns 0 to 1. Inlined: each sample of a GPU charges all tasks there.
 */
static inline double charge_rate(const struct gpu_use *use)
{
    double smact = reading_assume(use->smact, use->equal_part);
    double memory = reading_assume(use->memory, use->equal_part);
    if (use->is_whole)
        return 1;
    double larger = smact > memory ? smact : memory;
    larger = use->promised > larger ? use->promised : larger;
    return larger > 1 ? 1 : larger > 0 ? larger : 0;
}

/*
 * What is left of a charge after some time.
 *
 * charge:       in any unit
 * elapsed_us:   since it was charged; negative counts as 0
 * half_life_us: after which half of it is left; above 0
 *
 * Returns the rest, in the same unit.
 */
double charge_decay(double charge, int64_t elapsed_us, int64_t half_life_us);

#endif
