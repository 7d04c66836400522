/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of Adam (algorithm 1 of the paper) for each weight w with gradient g, at step t:
 *
 *     m += (1 - b1) (g - m)                 running mean of the gradients
 *     v += (1 - b2) (g^2 - v)               running mean of their squares
 *     w -= rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + e)
 *
 * The divisions by 1 - b^t make up for the means' start at 0.
 */
#include "memnet/adam.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Of the same paper. */
static const float mean_share = 0.9f, square_share = 0.999f, epsilon = 1e-8f;

int adam_init(struct adam *adam, size_t n)
{
    *adam = (struct adam){
        .mean = calloc(n, sizeof *adam->mean), .square = calloc(n, sizeof *adam->square), .n = n};
    if (adam->mean && adam->square)
        return 0;
    adam_fini(adam);
    return -ENOMEM;
}

void adam_fini(struct adam *adam)
{
    free(adam->mean);
    free(adam->square);
    *adam = (struct adam){0};
}

void adam_step(struct adam *adam, double rate, float *weights, float *gradients)
{
    adam->steps++;
    float step = (float)(rate / (1 - pow((double)mean_share, adam->steps)));
    float root = (float)sqrt(1 - pow((double)square_share, adam->steps));
    for (size_t i = 0; i < adam->n; i++) {
        float g = gradients[i];
        adam->mean[i] += (1 - mean_share) * (g - adam->mean[i]);
        adam->square[i] += (1 - square_share) * (g * g - adam->square[i]);
        weights[i] -= step * adam->mean[i] / (sqrtf(adam->square[i]) / root + epsilon);
        gradients[i] = 0;
    }
}
