/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values are part of the tasks' requests; the model needs all fractions. */
#include "core/gpu_sharers.h"

#include <math.h>

void gpu_sharer_set(struct sharer *sharer, const struct expectation *expect, enum sharing sharing,
    int thread_percent)
{
    sharer->demand = (struct demand){reading_assume(expect->gract, NAN),
        reading_assume(expect->smact, 1), NAN, reading_assume(expect->dram, NAN), 0};
    demand_complete(&sharer->demand, 0);
    sharer->mps = sharing != SHARING_STREAMS;
    sharer->cap = thread_percent / 100.0;
}

/* Of a resident that does not compute. Not zero: weights are divided by it. */
static const struct demand no_demand = {.gract = 1e-6, .smact = 1e-6, .smocc = 1e-6, .dram = 1e-6};

void gpu_sharers_list(const struct gpu_view *gpu, struct sharer *ret_sharers)
{
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        gpu_sharer_set(
            &ret_sharers[i], &resident->expect, resident->sharing, resident->thread_percent);
        if (resident->is_stopped)
            ret_sharers[i].demand = no_demand;
    }
}

/* How slow a client is alone depends on its activity in turn: each round comes ten times nearer. */
enum { SMACT_ROUNDS = 6 };

double gpu_sharer_smact(const struct interference_constants *constants,
    const struct expectation *expect, enum sharing sharing, int thread_percent, double seen)
{
    struct expectation guess = *expect;
    guess.smact = reading_of(seen);
    for (int i = 0; i < SMACT_ROUNDS && sharing != SHARING_STREAMS; i++) {
        struct sharer sharer;
        double before = guess.smact.value;
        gpu_sharer_set(&sharer, &guess, sharing, thread_percent);
        guess.smact.value = fmin(1,
            seen *
                interference_alone(constants ? constants : &interference_measured, 1, 1, &sharer));
        if (guess.smact.value == before)
            break; /* so are all further rounds */
    }
    return guess.smact.value;
}

double gpu_sharer_slowdown(
    const struct interference_constants *constants, const struct sharer *sharer, double speed)
{
    double alone = interference_alone(constants ? constants : &interference_measured, 1, 1, sharer);
    return speed > 0 ? 1 / (speed * alone) : INFINITY;
}
