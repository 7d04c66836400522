/* SPDX-License-Identifier: Apache-2.0 */
/* A value within bounds; the larger of two. */
#ifndef COLLOC_BASE_CLAMP_H
#define COLLOC_BASE_CLAMP_H

#include <stdint.h>

/* Returns the value, or the bound that it passes. `least`, if that is
 * above `most`. */
static inline int64_t clamp_int64(int64_t value, int64_t least, int64_t most)
{
    int64_t limited = value < most ? value : most;
    return limited > least ? limited : least;
}

static inline int clamp_int(int value, int least, int most)
{
    return (int)clamp_int64(value, least, most);
}

static inline int64_t max_int64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A count of bytes as a whole number, which is not negative: INT64_MAX where it is larger. */
static inline int64_t clamp_bytes(double bytes)
{
    return bytes < (double)INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

#endif
