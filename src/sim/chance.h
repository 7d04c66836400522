/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that look drawn at random, and that a seed and an index alone decide: in whatever order
 * they are asked for.
 */
#ifndef COLLOC_SIM_CHANCE_H
#define COLLOC_SIM_CHANCE_H

#include <stdint.h>

/* Of the normal distribution, mean 0, standard deviation 1. */
double chance_normal(uint64_t seed, uint64_t index);

/* Of 0 to n - 1, n > 0. */
uint64_t chance_below(uint64_t seed, uint64_t index, uint64_t n);

#endif
