/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values are part of the tasks' requests; the model needs all fractions. */
#include "core/gpu_sharers.h"

#include <math.h>

/* What is expected; NAN: it follows from SMACT. */
static struct demand expected_demand(const struct expectation *expect)
{
    return (struct demand){reading_assume(expect->gract, NAN), reading_assume(expect->smact, 1),
        NAN, reading_assume(expect->dram, NAN), 0};
}

void gpu_sharer_set(struct sharer *sharer, const struct expectation *expect, enum sharing sharing,
    int thread_percent)
{
    sharer->demand = expected_demand(expect);
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

double gpu_sharer_smact(const struct interference_constants *constants,
    const struct expectation *expect, enum sharing sharing, int thread_percent, double seen)
{
    struct demand known = expected_demand(expect);
    if (sharing == SHARING_STREAMS)
        return seen;
    return interference_plain_smact(
        constants ? constants : &interference_measured, &known, thread_percent / 100.0, seen);
}

double gpu_sharer_slowdown(
    const struct interference_constants *constants, const struct sharer *sharer, double speed)
{
    double alone = interference_alone(constants ? constants : &interference_measured, 1, 1, sharer);
    return speed > 0 ? 1 / (speed * alone) : INFINITY;
}
