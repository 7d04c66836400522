/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the metric of a simulated training falls over its steps: at given values, or along a drawn
 * curve. Pure.
 */
#ifndef COLLOC_SIM_LOSS_CURVE_H
#define COLLOC_SIM_LOSS_CURVE_H

#include "base/reading.h"
#include "core/halving.h"

struct loss_curve {
    double values[STOP_RUNGS_MAX]; /* given: at the rungs, the last at the end; NAN: diverged */
    int n;                         /* of them; 0: the curve is drawn */
    double end, drop, power;       /* drawn: end + drop * step^-power */
};

/*
 * Parses semicolon-separated values, such as "0.9;0.5;nan".
 *
 * Returns 0, or -EINVAL: a value is neither a number nor nan, or there are more than rungs.
 */
int loss_curve_parse(const char *text, struct loss_curve *ret_curve);

/* Draws the curve of a task. The same seed draws the same, whatever was drawn before. */
struct loss_curve loss_curve_draw(uint64_t seed, uint64_t task);

/* Returns the value at a rung of the rule; not valid: none is given there. */
struct reading loss_curve_at(
    const struct loss_curve *curve, const struct halving_rule *rule, int rung);

/* Returns the last value as a cost: less is better. `steps`: of the whole training. */
double loss_curve_end_cost(
    const struct loss_curve *curve, const struct halving_rule *rule, double steps);

#endif
