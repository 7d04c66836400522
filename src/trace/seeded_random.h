/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence of random numbers that the seed decides: splitmix64 (Steele, Lea, Flood, OOPSLA
 * 2014). */
#ifndef COLLOC_TRACE_SEEDED_RANDOM_H
#define COLLOC_TRACE_SEEDED_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct seeded_random {
    uint64_t state; /* the seed at first */
};

/* Returns a number from 0 to 1, 1 not included. */
double seeded_random_fraction(struct seeded_random *random);

/* Returns an integer from 0 to bound - 1; `bound` is above 0. */
size_t seeded_random_below(struct seeded_random *random, size_t bound);

/* Returns a number of the normal distribution with mean 0 and standard deviation 1. */
double seeded_random_normal(struct seeded_random *random);

#endif
