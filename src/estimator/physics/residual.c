/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The learned correction of the physical estimate.
 *
 * The logarithm of measured to physical memory (both above the CUDA context) is taken to be a
 * linear function of twenty ratios: y = w . features. The estimate is physics times exp(y). w is in
 * graph_weights.inc, one row for each kind of evidence; its entries carry the feature's name, so
 * their order means nothing. scripts/fit-estimators makes it from the measured runs in data/memory.
 * A missing row means no correction: the fit found none that helps networks of families that it had
 * not seen.
 *
 * Example: a summary's intercept of -0.021 alone would lower all estimates above the context by 2
 * %.
 */
#include "estimator/physics/residual.h"

#include <math.h>

#include "base/units.h"

enum weights_of { WEIGHTS_SUMMARY, WEIGHTS_EXPORT, WEIGHTS_KERNELS, WEIGHTS_ROWS };

static const double weights[WEIGHTS_ROWS][RESIDUAL_FEATURES] = {
#include "estimator/physics/graph_weights.inc"
};

/* Divides the logarithms of size and depth. Chosen: then they vary about as much as the ratios do,
 * and one ridge suits all. */
static const double log_scale = 4;

const char *residual_feature_name(enum residual_feature feature)
{
    static const char *const names[RESIDUAL_FEATURES] = {
        [FEATURE_ONE] = "ONE",
        [FEATURE_PARAMETERS] = "PARAMETERS",
        [FEATURE_STATES] = "STATES",
        [FEATURE_SAVED] = "SAVED",
        [FEATURE_WORKSPACE] = "WORKSPACE",
        [FEATURE_LARGEST_MAP] = "LARGEST_MAP",
        [FEATURE_LOSS] = "LOSS",
        [FEATURE_LIVE] = "LIVE",
        [FEATURE_LOG_SIZE] = "LOG_SIZE",
        [FEATURE_LOG_DEPTH] = "LOG_DEPTH",
        [FEATURE_CONV] = "CONV",
        [FEATURE_CONV_SAVED] = "CONV_SAVED",
        [FEATURE_MERGES] = "MERGES",
        [FEATURE_GUESSED] = "GUESSED",
        [FEATURE_TOKENS] = "TOKENS",
        [FEATURE_TOKENS_SAVED] = "TOKENS_SAVED",
        [FEATURE_HALF] = "HALF",
        [FEATURE_HALF_SAVED] = "HALF_SAVED",
        [FEATURE_UNALIGNED] = "UNALIGNED",
        [FEATURE_FOURIER] = "FOURIER",
    };
    return names[feature];
}

void residual_features(const struct physics *physics, double ret_features[static RESIDUAL_FEATURES])
{
    const struct footprint *part = &physics->footprint;
    const struct tape_doubts *doubts = &physics->doubts;
    double all = part->reserved, ops = physics->depth > 0 ? physics->depth : 1, *f = ret_features;
    double saved = part->saved / all, tokens = physics->sequence > 0, half = physics->autocast;
    f[FEATURE_ONE] = 1;
    f[FEATURE_PARAMETERS] = (part->weights + part->gradients) / all;
    f[FEATURE_STATES] = part->states / all;
    f[FEATURE_SAVED] = saved;
    f[FEATURE_WORKSPACE] = part->largest_workspace / all;
    f[FEATURE_LARGEST_MAP] = part->largest_map / all;
    f[FEATURE_LOSS] = part->loss / all;
    f[FEATURE_LIVE] = part->live / all;
    f[FEATURE_LOG_SIZE] = log(all / (double)GIB) / log_scale;
    f[FEATURE_LOG_DEPTH] = log(ops) / log_scale;
    f[FEATURE_CONV] = physics->conv_share;
    f[FEATURE_CONV_SAVED] = physics->conv_share * saved;
    f[FEATURE_MERGES] = (double)doubts->n_merges / ops;
    f[FEATURE_GUESSED] = (double)doubts->n_guessed / ops;
    f[FEATURE_TOKENS] = tokens;
    f[FEATURE_TOKENS_SAVED] = tokens * saved;
    f[FEATURE_HALF] = half;
    f[FEATURE_HALF_SAVED] = half * saved;
    f[FEATURE_UNALIGNED] = physics->unaligned;
    f[FEATURE_FOURIER] = log1p(physics->fourier_bytes / all);
}

static double sum_of(
    const double coefficients[static RESIDUAL_FEATURES], const struct physics *physics)
{
    double features[RESIDUAL_FEATURES], sum = 0;
    residual_features(physics, features);
    for (int i = 0; i < RESIDUAL_FEATURES; i++)
        sum += coefficients[i] * features[i];
    return sum;
}

double residual_factor(const struct physics *physics)
{
    enum weights_of row = !physics->is_export      ? WEIGHTS_SUMMARY
                          : physics->knows_kernels ? WEIGHTS_KERNELS
                                                   : WEIGHTS_EXPORT;
    double least = log(RESIDUAL_FACTOR_MIN), most = log(RESIDUAL_FACTOR_MAX);
    return exp(fmin(fmax(sum_of(weights[row], physics), least), most));
}
