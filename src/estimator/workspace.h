/*
 * The scratch memory that a library's kernel takes through the caching allocator and gives back at once. cuDNN's fast
 * kernels for dense convolutions read and write channels last and turn ordinary maps round: input, output and weight
 * once more. No framework reports it.
 */
#ifndef COLLOC_ESTIMATOR_WORKSPACE_H
#define COLLOC_ESTIMATOR_WORKSPACE_H

#include <stdbool.h>

struct convolution {
    double input, output, weight; /* bytes */
    bool dense;                   /* not in groups */
    bool pointwise;               /* a kernel of one tap */
    bool backward;
};

double workspace_of(const struct convolution *convolution);

#endif
