/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of one float for each of several positions of a sequence. GCC and clang turn operations
 * on them into the instructions that the machine has. */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_LANES_H
#define COLLOC_GPUMEMNET_GPUMEMNET_LANES_H

#include <stdbool.h>

enum { LANES = 8 }; /* positions that are computed at the same time */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

/* Functions that are compiled twice, the second time for AVX2. */
#define LANES_INLINE static inline __attribute__((always_inline))

#ifdef __x86_64__
#define LANES_AVX2 __attribute__((target("avx2")))

static inline bool lanes_have_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define LANES_AVX2

static inline bool lanes_have_avx2(void)
{
    return false;
}
#endif

#endif
