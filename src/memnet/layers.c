/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layers, norms and blocks. Each has a forward pass and a backward pass, which follows by
 * the chain rule: from the derivative dy of the loss by the output it computes dx, that by the
 * input, and adds the derivatives by the weights to `gradients`. tests/unit/memnet compares all of
 * them with finite differences, and with PyTorch where that is installed. */
#include "memnet/layers.h"

#include <math.h>
#include <string.h>

static const float running_share = 0.1f; /* PyTorch's momentum */

/* ---- linear ---- */

void linear_forward(const struct blas *blas, const struct linear_layout *layout,
    const float *weights, const float *x, size_t n, float *ret_y)
{
    int in = layout->in, out = layout->out;
    for (size_t i = 0; i < n; i++)
        memcpy(ret_y + i * (size_t)out, weights + layout->bias, (size_t)out * sizeof *ret_y);
    blas->sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, out, in, 1, x, in,
        weights + layout->weight, in, 1, ret_y, out);
}

void linear_backward(const struct blas *blas, const struct linear_layout *layout,
    const float *weights, const float *x, const float *dy, size_t n, float *gradients,
    float *ret_dx)
{
    int in = layout->in, out = layout->out;
    float *db = gradients + layout->bias;
    blas->sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, (int)n, 1, dy, out, x, in, 1,
        gradients + layout->weight, in);
    for (size_t i = 0; i < n; i++)
        for (int o = 0; o < out; o++)
            db[o] += dy[i * (size_t)out + (size_t)o];
    if (ret_dx)
        blas->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, in, out, 1, dy, out,
            weights + layout->weight, in, 0, ret_dx, in);
}

void relu_forward(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
}

void relu_backward(const float *y, float *dy, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dy[i] = y[i] > 0 ? dy[i] : 0;
}

/* ---- batch norm ---- */

/* The mean and the variance of one channel or row, summed in double, since a batch has many
 * rows. */
static void mean_and_variance(
    const float *x, size_t n, size_t stride, double *ret_mean, double *ret_variance)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i * stride];
    *ret_mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)x[i * stride] - *ret_mean) * ((double)x[i * stride] - *ret_mean);
    *ret_variance = squares / (double)n;
}

static void update_running(float *running, double now)
{
    *running += running_share * ((float)now - *running);
}

void batch_norm_forward(const struct norm_layout *layout, float *weights, const float *x, size_t n,
    struct scratch *scratch, struct norm_tape *ret_tape, float *ret_y)
{
    size_t width = (size_t)layout->width;
    float *unit = scratch_alloc(scratch, n * width), *inverse = scratch_alloc(scratch, width);
    for (size_t c = 0; c < width; c++) {
        double mean, variance;
        mean_and_variance(x + c, n, width, &mean, &variance);
        update_running(&weights[layout->mean + c], mean);
        update_running(&weights[layout->variance + c], variance * (double)n / (double)(n - 1));
        float scale = weights[layout->scale + c], shift = weights[layout->shift + c];
        inverse[c] = (float)(1 / sqrt(variance + (double)GPUMEMNET_EPSILON));
        for (size_t i = c; i < n * width; i += width) {
            unit[i] = (x[i] - (float)mean) * inverse[c];
            ret_y[i] = unit[i] * scale + shift;
        }
    }
    *ret_tape = (struct norm_tape){unit, inverse};
}

void batch_norm_backward(const struct norm_layout *layout, const float *weights,
    const struct norm_tape *tape, const float *dy, size_t n, float *gradients, float *ret_dx)
{
    size_t width = (size_t)layout->width;
    for (size_t c = 0; c < width; c++) {
        double sum = 0, along = 0;
        for (size_t i = c; i < n * width; i += width) {
            sum += (double)dy[i];
            along += (double)dy[i] * (double)tape->unit[i];
        }
        gradients[layout->shift + c] += (float)sum;
        gradients[layout->scale + c] += (float)along;
        float mean = (float)(sum / (double)n), slope = (float)(along / (double)n);
        float factor = weights[layout->scale + c] * tape->inverse[c];
        for (size_t i = c; i < n * width; i += width)
            ret_dx[i] = factor * (dy[i] - mean - tape->unit[i] * slope);
    }
}

/* ---- layer norm ---- */

void layer_norm_forward(const struct norm_layout *layout, const float *weights, const float *x,
    size_t n, struct scratch *scratch, struct norm_tape *ret_tape, float *ret_y)
{
    const float *scale = weights + layout->scale, *shift = weights + layout->shift;
    size_t width = (size_t)layout->width;
    float *unit = scratch_alloc(scratch, n * width), *inverse = scratch_alloc(scratch, n);
    for (size_t i = 0; i < n; i++) {
        double mean, variance;
        mean_and_variance(x + i * width, width, 1, &mean, &variance);
        inverse[i] = (float)(1 / sqrt(variance + (double)GPUMEMNET_EPSILON));
        for (size_t c = 0; c < width; c++) {
            unit[i * width + c] = (x[i * width + c] - (float)mean) * inverse[i];
            ret_y[i * width + c] = unit[i * width + c] * scale[c] + shift[c];
        }
    }
    *ret_tape = (struct norm_tape){unit, inverse};
}

void layer_norm_backward(const struct norm_layout *layout, const float *weights,
    const struct norm_tape *tape, const float *dy, size_t n, float *gradients, float *ret_dx)
{
    const float *scale = weights + layout->scale;
    size_t width = (size_t)layout->width;
    for (size_t i = 0; i < n; i++) {
        const float *d = dy + i * width, *unit = tape->unit + i * width;
        float sum = 0, along = 0;
        for (size_t c = 0; c < width; c++) {
            gradients[layout->shift + c] += d[c];
            gradients[layout->scale + c] += d[c] * unit[c];
            sum += d[c] * scale[c];
            along += d[c] * scale[c] * unit[c];
        }
        for (size_t c = 0; c < width; c++)
            ret_dx[i * width + c] = tape->inverse[i] *
                                    (d[c] * scale[c] - (sum + unit[c] * along) / (float)width);
    }
}

/* ---- block ---- */

float *block_forward(const struct block_layout *layout, float *weights, const float *x, size_t n,
    struct scratch *scratch, struct block_tape *ret_tape)
{
    float *y = scratch_alloc(scratch, n * (size_t)layout->linear.out);
    linear_forward(scratch->blas, &layout->linear, weights, x, n, y);
    *ret_tape = (struct block_tape){.x = x, .y = y};
    batch_norm_forward(&layout->norm, weights, y, n, scratch, &ret_tape->norm, y);
    relu_forward(y, n * (size_t)layout->linear.out);
    return y;
}

void block_backward(const struct block_layout *layout, const float *weights,
    const struct block_tape *tape, float *dy, size_t n, struct scratch *scratch, float *gradients,
    float *ret_dx)
{
    size_t mark = scratch->used;
    float *dsum = scratch_alloc(scratch, n * (size_t)layout->linear.out);
    relu_backward(tape->y, dy, n * (size_t)layout->linear.out);
    batch_norm_backward(&layout->norm, weights, &tape->norm, dy, n, gradients, dsum);
    linear_backward(scratch->blas, &layout->linear, weights, tape->x, dsum, n, gradients, ret_dx);
    scratch->used = mark;
}
