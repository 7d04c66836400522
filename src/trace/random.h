/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that a seed decides: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
#ifndef COLLOC_TRACE_RANDOM_H
#define COLLOC_TRACE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

double random_part(struct random *random);                /* from [0, 1) */
size_t random_below(struct random *random, size_t bound); /* from 0 .. bound - 1; bound above 0 */
double random_normal(struct random *random);              /* mean 0, standard deviation 1 */

#endif
