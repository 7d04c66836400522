/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The learned correction of the physical estimate. It follows from features of the training step
 * that are ratios, so it does not depend on its size.
 */
#ifndef COLLOC_PHYSICS_RESIDUAL_H
#define COLLOC_PHYSICS_RESIDUAL_H

#include "estimator/physics/physics.h"

/* "All" is the physical estimate above the CUDA context: footprint.reserved. */
enum residual_feature {
    FEATURE_ONE,          /* 1: the intercept */
    FEATURE_PARAMETERS,   /* weights and gradients / all */
    FEATURE_STATES,       /* the optimizer's states / all */
    FEATURE_SAVED,        /* what autograd keeps / all */
    FEATURE_WORKSPACE,    /* the largest workspace / all */
    FEATURE_LARGEST_MAP,  /* the largest activation / all */
    FEATURE_LOSS,         /* the loss's temporaries / all */
    FEATURE_LIVE,         /* the peak in use without workspaces / all */
    FEATURE_LOG_SIZE,     /* log(all in GiB) / 4 */
    FEATURE_LOG_DEPTH,    /* log(number of operations) / 4 */
    FEATURE_CONV,         /* convolutions' share of the multiply-adds */
    FEATURE_CONV_SAVED,   /* the product of CONV and SAVED */
    FEATURE_MERGES,       /* share of operations that no layer of the text makes */
    FEATURE_GUESSED,      /* share of operations whose input was not found */
    FEATURE_TOKENS,       /* 1 for a network over tokens */
    FEATURE_TOKENS_SAVED, /* the product of TOKENS and SAVED */
    FEATURE_HALF,         /* 1 under autocast */
    FEATURE_HALF_SAVED,   /* the product of HALF and SAVED */
    FEATURE_UNALIGNED,    /* physics.unaligned */
    FEATURE_FOURIER,      /* log(1 + physics.fourier_bytes / all) */
    RESIDUAL_FEATURES
};

/* Returns the name of a feature as the enumeration has it, "ONE". */
const char *residual_feature_name(enum residual_feature feature);

/*
 * Computes the features of a training step.
 * ret_features: by enum residual_feature.
 */
void residual_features(
    const struct physics *physics, double ret_features[static RESIDUAL_FEATURES]);

/* Limits of residual_factor: half and twice. A correction beyond them would be a broken rule. */
#define RESIDUAL_FACTOR_MIN 0.5
#define RESIDUAL_FACTOR_MAX 2.0

/* Returns the factor on the physical estimate above the context. */
double residual_factor(const struct physics *physics);

#endif
