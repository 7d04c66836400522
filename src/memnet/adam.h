/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer Adam (Kingma and Ba, 2015) with PyTorch's default constants. */
#ifndef COLLOC_MEMNET_ADAM_H
#define COLLOC_MEMNET_ADAM_H

#include <stddef.h>

struct adam {
    float *mean, *square; /* running means of the gradients and of their squares */
    size_t n;
    int steps;
};

int adam_init(struct adam *adam, size_t n); /* 0 or -ENOMEM */
void adam_fini(struct adam *adam);

/*
 * Updates the weights and sets the gradients to zero. A weight without a gradient does not change.
 */
void adam_step(struct adam *adam, double rate, float *weights, float *gradients);

#endif
