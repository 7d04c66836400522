/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention, softmax(q k^T / sqrt(width)) v, and its derivatives. */
#include <math.h>

#include "estimator/gpumemnet/softmax.h"
#include "memnet/layers.h"

void attention_forward(const struct blas *blas, const float *qkv, size_t n, int width,
    float *ret_weights, float *ret_y)
{
    const float *q = qkv, *k = qkv + width, *v = qkv + 2 * width;
    int rows = (int)n, stride = 3 * width;
    blas->sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, rows, width, 1 / sqrtf((float)width),
        q, stride, k, stride, 0, ret_weights, rows);
    for (size_t i = 0; i < n; i++)
        softmax_in_place(ret_weights + i * n, n);
    blas->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, width, rows, 1, ret_weights, rows,
        v, stride, 0, ret_y, width);
}

/* Turns the derivative of a row of weights into that of its scores, in place. `level`: sum of
 * weights times derivatives. */
static void softmax_backward(const float *weights, float level, float *d, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d[i] = weights[i] * (d[i] - level);
}

void attention_backward(const float *qkv, const float *weights, const float *dy, size_t n,
    int width, struct scratch *scratch, float *ret_dqkv)
{
    const float *q = qkv, *k = qkv + width, *v = qkv + 2 * width;
    const struct blas *blas = scratch->blas;
    float *dq = ret_dqkv, *dk = ret_dqkv + width, *dv = ret_dqkv + 2 * width;
    float factor = 1 / sqrtf((float)width);
    int rows = (int)n, stride = 3 * width;
    size_t mark = scratch->used;
    float *d = scratch_alloc(scratch, n * n);
    blas->sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, width, rows, 1, weights, rows, dy,
        width, 0, dv, stride);
    blas->sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, rows, width, 1, dy, width, v, stride,
        0, d, rows);
    for (size_t i = 0; i < n; i++)
        softmax_backward(
            weights + i * n, blas->sdot(rows, weights + i * n, 1, d + i * n, 1), d + i * n, n);
    blas->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, width, rows, factor, d, rows, k,
        stride, 0, dq, stride);
    blas->sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, width, rows, factor, d, rows, q,
        stride, 0, dk, stride);
    scratch->used = mark;
}
