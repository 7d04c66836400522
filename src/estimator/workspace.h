/*
 * The scratch memory that a library's kernel takes through the caching allocator and gives back at once. cuDNN's fast
 * kernels for dense convolutions read and write channels last and turn ordinary maps round: some share of input and
 * output once more, and the weight. No framework reports it.
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

/* Of input and output together: workspace_shares.inc, from data/memory by scripts/fit-estimators. */
struct workspace_shares {
    double forward, backward;
    double pointwise; /* both ways */
};

extern const struct workspace_shares workspace_shares;

double workspace_of(const struct convolution *convolution, const struct workspace_shares *shares);

#endif
