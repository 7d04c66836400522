/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention on vectors. The lanes of a vector are positions of the sequence, not terms of a sum:
 * each sum is added up in the order of the sequence, so results do not depend on the machine.
 */
#include "estimator/gpumemnet/gpumemnet_attention.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "estimator/gpumemnet/gpumemnet_lanes.h"
#include "estimator/gpumemnet/gpumemnet_layout.h"

typedef int32_t lane_bits __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

LANES_INLINE void greater_of(lanes *x, const lanes *y)
{
    lane_bits keep = *x > *y;
    *x = (lanes)((keep & (lane_bits)*x) | (~keep & (lane_bits)*y));
}

/* exp_negative of softmax.h, for each lane. */
LANES_INLINE void exp_each(lanes *x)
{
    const float magic = 12582912.0f; /* 1.5 x 2^23, as there */
    const lanes least = (lanes){0} - 87.0f;
    greater_of(x, &least);
    lanes shifted = *x * 1.44269504f + magic, n = shifted - magic;
    lanes r = (*x - n * 0.693145752f) - n * 1.42860677e-6f;
    lanes p = 0.00833333333f + r * 0.00138888889f;
    p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * p))));
    *x = p * (lanes)(((lane_bits)shifted << 23) + 0x3f800000);
}

/* `width` is a->width as a compile-time constant, so that the channels stay in registers. */
LANES_INLINE void take(const struct attention *a, int width, size_t t, float *ret_mixed)
{
    lanes q[GPUMEMNET_WIDTH_MAX] = {0}; /* gcc 13 does not see that the first loop fills it */
    lanes mixed[GPUMEMNET_WIDTH_MAX], most, sum = {0}, *scores = (lanes *)a->scores;
    float factor = 1 / sqrtf((float)width);
    for (int c = 0; c < width; c++) {
        q[c] = *(const lanes *)&a->q[(size_t)c * a->rows + t] * factor;
        mixed[c] = (lanes){0};
    }
    for (size_t i = 0; i < a->n; i++) {
        lanes score = q[0] * a->k[i];
        for (int c = 1; c < width; c++)
            score += q[c] * a->k[(size_t)c * a->rows + i];
        if (i == 0)
            most = score;
        greater_of(&most, &score);
        scores[i] = score;
    }
    for (size_t i = 0; i < a->n; i++) {
        lanes score = scores[i] - most;
        exp_each(&score);
        sum += score;
        scores[i] = score;
    }
    for (size_t i = 0; i < a->n; i++)
        for (int c = 0; c < width; c++)
            mixed[c] += scores[i] * a->v[(size_t)c * a->rows + i];
    for (int c = 0; c < width; c++)
        mixed[c] /= sum;
    memcpy(ret_mixed, mixed, (size_t)width * sizeof *mixed);
}

LANES_INLINE void take_by_width(const struct attention *a, size_t t, float *ret_mixed)
{
    if (a->width == 6)
        take(a, 6, t, ret_mixed);
    else if (a->width == 4)
        take(a, 4, t, ret_mixed);
    else
        take(a, a->width, t, ret_mixed);
}

static void take_anywhere(const struct attention *a, size_t t, float *ret_mixed)
{
    take_by_width(a, t, ret_mixed);
}

LANES_AVX2 static void take_avx2(const struct attention *a, size_t t, float *ret_mixed)
{
    take_by_width(a, t, ret_mixed);
}

void attention_take(const struct attention *attention, size_t t, float *ret_mixed)
{
    (lanes_have_avx2() ? take_avx2 : take_anywhere)(attention, t, ret_mixed);
}
