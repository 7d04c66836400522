/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a training takes its GPU memory. CUDA's context comes first, and at once. Then a caching
 * allocator asks NVIDIA's driver for larger and larger segments until the first step of training is
 * done: here for six parts of what the context leaves, at equal distances in time. Assumed; the
 * last three are a quarter each, so where free memory is in pieces a segment may fit into none of
 * them.
 *
 * A training of 8,500 MiB with a ramp of 20 s:
 *
 *     after        0 s    0 s    4 s     8 s    12 s    16 s    20 s
 *     takes        500    500    500   1,000   2,000   2,000   2,000 MiB
 */
#include "sharing/memory_steps.h"

/* Parts of the memory beyond the context. Chosen: allocators of frameworks grow by doubling. */
static const double parts[MEMORY_STEPS] = {0, 1. / 16, 1. / 16, 1. / 8, 1. / 4, 1. / 4, 1. / 4};

int64_t memory_step_bytes(int64_t total_bytes, int64_t context_bytes, int step)
{
    int64_t context = total_bytes < context_bytes ? total_bytes : context_bytes;
    return step == 0 ? context : (int64_t)((double)(total_bytes - context) * parts[step]);
}

double memory_step_due_s(double ramp_s, int step)
{
    return step == 0 ? 0 : ramp_s * (step - 1) / (MEMORY_STEPS - 2);
}
