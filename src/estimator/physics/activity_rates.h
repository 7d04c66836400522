/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants of the roofline: activity_rates.inc, fitted to the steps in data/steps by
 * scripts/fit-steps. One list names them, for the fit, which reads and sets them by name.
 */
#ifndef COLLOC_PHYSICS_ACTIVITY_RATES_H
#define COLLOC_PHYSICS_ACTIVITY_RATES_H

/* X(name) for each. */
/* clang-format off */
#define ACTIVITY_RATES(X)                                                           \
    /* Microseconds of the host. */                                                 \
    X(phase_us)                     /* each of 3 phases */                           \
    X(forward_us)                   /* an operator that launches kernels, forward */\
    X(backward_us)                  /* backward */                                  \
    X(view_us)                      /* one that launches none */                    \
    X(module_us)                    /* the call of a module */                      \
    X(conv_us)                      /* a convolution more than another operator */  \
    X(tensor_us)                    /* a tensor in a list of the update's */              \
    /* Microseconds of the GPU. */                                                  \
    X(kernel_us)                    /* a kernel at least */                         \
    X(chain_us)                     /* each of the chain of a recurrent layer */    \
    /* Parts of the data sheet's rates. */                                          \
    X(half_share)                   /* tensor cores in 16 bit */                    \
    X(tf32_share)                   /* tensor cores in TF32 */                      \
    X(single_share)                 /* fp32 without tensor cores */                 \
    X(attention_share)              /* attention in one kernel, in 16 bit */        \
    X(attention_single_share)       /* in 32 bit */                                 \
    /* Operations of an SM in a cycle. */                                           \
    X(depthwise_rate)               /* depthwise convolutions */                    \
    X(depthwise_gradient_rate)      /* their gradients */                           \
    /* Parts of these. */                                                           \
    X(square_tile_share)            /* tiles of 128 x 128 */                        \
    X(small_tile_share)             /* tiles of 64 x 64 */                          \
    X(pointwise_share)              /* convolutions of one tap in TF32: of what an
                                       older kernel reaches */                      \
    X(gradient_share)               /* gradients of a convolution's weight */       \
    X(unaligned_share)              /* channels that tensor cores cannot use */     \
    X(grouped_share)                /* grouped convolutions */                      \
    /* The memory: parts of its bandwidth, and the time of an element. */           \
    X(bandwidth_share)              /* most kernels */                              \
    X(transform_share)              /* changes of a convolution's layout */         \
    X(norm_share)                   /* normalisation of rows */                     \
    X(norm_element_ns)              /* a block of a normalisation over the batch */ \
    /* Parts of a kernel's time. */                                                 \
    X(active_share)                 /* until its first SM runs out of blocks */     \
    /* Of a summary, which shows not all. */                                        \
    X(hidden)                       /* operators around a product */
/* clang-format on */

struct activity_rates {
#define X(name) double name;
    ACTIVITY_RATES(X)
#undef X
};

extern const struct activity_rates activity_rates;

#endif
