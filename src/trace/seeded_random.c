/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that are the same for the same seed. splitmix64 for the bits, 53 of them for a
 * fraction, and Box and Muller's formula for the normal distribution. Fast, and good enough for
 * drawing jobs; not for secrets.
 */
#include "trace/seeded_random.h"

#include <math.h>

double seeded_random_fraction(struct seeded_random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

size_t seeded_random_below(struct seeded_random *random, size_t bound)
{
    return (size_t)(seeded_random_fraction(random) * (double)bound);
}

double seeded_random_normal(struct seeded_random *random)
{
    double radius = sqrt(-2 * log(1 - seeded_random_fraction(random))); /* Box and Muller */
    return radius * cos(2 * M_PI * seeded_random_fraction(random));
}
