/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash of seed and index (splitmix64's mixing of a counter) instead of a sequence: the number of
 * a task does not depend on how many numbers were drawn before, so two policies get the same tasks.
 */
#include "sim/chance.h"

#include <math.h>

static uint64_t mix_bits(uint64_t seed, uint64_t index)
{
    uint64_t z = seed * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* A number between 0 and 1, neither included. */
static double draw_uniform(uint64_t seed, uint64_t index)
{
    return ((double)(mix_bits(seed, index) >> 11) + 0.5) / 9007199254740992.0;
}

double chance_normal(uint64_t seed, uint64_t index)
{
    return sqrt(-2 * log(draw_uniform(seed, 2 * index))) *
           cos(2 * M_PI * draw_uniform(seed, 2 * index + 1));
}

uint64_t chance_below(uint64_t seed, uint64_t index, uint64_t n)
{
    return (uint64_t)(draw_uniform(seed, index) * (double)n);
}
