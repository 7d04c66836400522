/* SPDX-License-Identifier: Apache-2.0 */
/* Adam (Kingma and Ba, 2015) with PyTorch's usual constants. */
#ifndef COLLOC_MEMNET_ADAM_H
#define COLLOC_MEMNET_ADAM_H

#include <stddef.h>

struct adam {
    float *mean, *square; /* running, of the gradients */
    size_t n;
    int steps;
};

int adam_init(struct adam *adam, size_t n); /* 0 or -ENOMEM */
void adam_fini(struct adam *adam);

/* One step; the gradients are zero afterwards. A weight that never has a gradient stays as it is.
 */
void adam_step(struct adam *adam, double rate, float *weights, float *gradients);

#endif
