/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers. Each depends on a seed and an index only, not on the order of the calls. */
#ifndef COLLOC_SIM_CHANCE_H
#define COLLOC_SIM_CHANCE_H

#include <stdint.h>

/* Returns a number of the normal distribution with mean 0 and standard deviation 1. */
double chance_normal(uint64_t seed, uint64_t index);

/* Returns an integer from 0 to n - 1; `n` is above 0. */
uint64_t chance_below(uint64_t seed, uint64_t index, uint64_t n);

#endif
