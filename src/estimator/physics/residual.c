/* SPDX-License-Identifier: Apache-2.0 */
#include "estimator/physics/residual.h"

#include <math.h>

#include "base/units.h"

/* Of summaries, of exports, of exports with kernels. */
static const double weights[3][RESIDUAL_FEATURES] = {
#include "estimator/physics/graph_weights.inc"
};

/* Of declared summaries, of bare ones, of exports, of exports with kernels. */
static const double spread_weights[4][RESIDUAL_FEATURES] = {
#include "estimator/physics/spread_weights.inc"
};

void residual_features(const struct physics *physics, double ret_features[static RESIDUAL_FEATURES])
{
    const struct footprint *f = &physics->footprint;
    const struct tape_doubts *doubts = &physics->doubts;
    double all = f->reserved, ops = physics->depth > 0 ? physics->depth : 1;
    double saved = f->saved / all, tokens = physics->sequence > 0, half = physics->autocast;
    const double features[RESIDUAL_FEATURES] = {
        1,
        (f->weights + f->gradients) / all,
        f->states / all,
        saved,
        f->largest_workspace / all,
        f->largest_map / all,
        f->loss / all,
        f->live / all,
        log(all / (double)GIB) / 4,
        log(ops) / 4,
        physics->conv_share,
        physics->conv_share * saved,
        (double)doubts->n_merges / ops,
        (double)doubts->n_guessed / ops,
        tokens,
        tokens * saved,
        half,
        half * saved,
        physics->unaligned,
        log1p(physics->fourier_bytes / all),
    };
    for (int i = 0; i < RESIDUAL_FEATURES; i++)
        ret_features[i] = features[i];
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
    return exp(
        fmin(fmax(sum_of(weights[physics->is_export + physics->knows_kernels], physics), -M_LN2),
            M_LN2));
}

double residual_spread(const struct physics *physics, enum evidence evidence)
{
    int kind = physics->is_export ? 2 + physics->knows_kernels : evidence == EVIDENCE_SUMMARY;
    return fmin(fmax(exp(sum_of(spread_weights[kind], physics)), 0.004), 0.12);
}
