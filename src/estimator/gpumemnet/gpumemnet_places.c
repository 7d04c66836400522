/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of an encoder that work on each position alone. A network is only 4 or 6 channels
 * wide: along them there is nothing to be done at the same time, but each instruction can work on
 * LANES positions.
 */
#include "estimator/gpumemnet/gpumemnet_places.h"

#include <math.h>

LANES_INLINE void apply_linear(const float *weights, const struct linear_layout *layout,
    const lanes *x, size_t stride, float *ret_y)
{
    const float *w = weights + layout->weight, *b = weights + layout->bias;
    for (int o = 0; o < layout->out; o++) {
        lanes sum = (lanes){0} + b[o];
        for (int i = 0; i < layout->in; i++)
            sum += w[o * layout->in + i] * x[i];
        *(lanes *)&ret_y[(size_t)o * stride] = sum;
    }
}

/* x + y, normalised over the rows, into x. */
LANES_INLINE void add_and_norm(
    const float *weights, const struct norm_layout *layout, lanes *x, const lanes *y)
{
    lanes mean = {0}, variance = {0}, factor;
    for (int i = 0; i < layout->width; i++)
        mean += x[i] += y[i];
    mean /= (float)layout->width;
    for (int i = 0; i < layout->width; i++)
        variance += (x[i] - mean) * (x[i] - mean);
    for (int k = 0; k < LANES; k++)
        factor[k] = 1 / sqrtf(variance[k] / (float)layout->width + GPUMEMNET_EPSILON);
    for (int i = 0; i < layout->width; i++)
        x[i] = (x[i] - mean) * factor * weights[layout->scale + i] + weights[layout->shift + i];
}

LANES_INLINE void apply_relu(lanes *x, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < LANES; k++)
            x[i][k] = x[i][k] > 0 ? x[i][k] : 0;
}

LANES_INLINE void finish(
    const float *weights, const struct encoder_layer_layout *layer, const lanes *mixed, lanes *x)
{
    lanes inner[GPUMEMNET_WIDTH_MAX], out[GPUMEMNET_WIDTH_MAX];
    apply_linear(weights, &layer->projection, mixed, LANES, (float *)out);
    add_and_norm(weights, &layer->norm_attention, x, out);
    apply_linear(weights, &layer->up, x, LANES, (float *)inner);
    apply_relu(inner, GPUMEMNET_FEED_FORWARD);
    apply_linear(weights, &layer->down, inner, LANES, (float *)out);
    add_and_norm(weights, &layer->norm_feed_forward, x, out);
}

static void project_anywhere(const float *weights, const struct linear_layout *layout,
    const float *x, size_t stride, float *ret_y)
{
    apply_linear(weights, layout, (const lanes *)x, stride, ret_y);
}

LANES_AVX2 static void project_avx2(const float *weights, const struct linear_layout *layout,
    const float *x, size_t stride, float *ret_y)
{
    apply_linear(weights, layout, (const lanes *)x, stride, ret_y);
}

static void finish_anywhere(
    const float *weights, const struct encoder_layer_layout *layer, const float *mixed, float *x)
{
    finish(weights, layer, (const lanes *)mixed, (lanes *)x);
}

LANES_AVX2 static void finish_avx2(
    const float *weights, const struct encoder_layer_layout *layer, const float *mixed, float *x)
{
    finish(weights, layer, (const lanes *)mixed, (lanes *)x);
}

void places_project(const float *weights, const struct linear_layout *layout, const float *x,
    size_t stride, float *ret_y)
{
    (lanes_have_avx2() ? project_avx2 : project_anywhere)(weights, layout, x, stride, ret_y);
}

void places_finish(
    const float *weights, const struct encoder_layer_layout *layer, const float *mixed, float *x)
{
    (lanes_have_avx2() ? finish_avx2 : finish_anywhere)(weights, layer, mixed, x);
}
