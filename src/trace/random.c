/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/random.h"

#include <math.h>

double random_part(struct random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

size_t random_below(struct random *random, size_t bound)
{
    return (size_t)(random_part(random) * (double)bound);
}

double random_normal(struct random *random)
{
    double radius = sqrt(-2 * log(1 - random_part(random))); /* Box and Muller */
    return radius * cos(2 * M_PI * random_part(random));
}
