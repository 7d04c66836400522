/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e^x for x in [-87, 0] within 4e-7, written so that compilers turn a loop over it into vector
 * code: an encoder computes it once for each pair of positions. Training and estimation use the
 * same code, so results do not depend on the C library.
 */
#ifndef COLLOC_GPUMEMNET_SOFTMAX_H
#define COLLOC_GPUMEMNET_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline float exp_negative(float x)
{
    const float magic = 12582912.0f; /* 1.5 x 2^23: adding it rounds to whole numbers */
    x = x < -87.0f ? -87.0f : x;
    float shifted = x * 1.44269504f + magic, n = shifted - magic;
    float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    float p = 0.00833333333f + r * 0.00138888889f;
    p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * p))));
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) +
           0x3f800000u; /* 2^n: the low bits of `shifted` are n, those above fall out */
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* Replaces the `n` values of x[] by their softmax. */
static inline void softmax_in_place(float *x, size_t n)
{
    float most = x[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++)
        x[i] = exp_negative(x[i] - most);
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    for (size_t i = 0; i < n; i++)
        x[i] /= sum;
}

#endif
