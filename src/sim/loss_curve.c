/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A drawn curve is a power law, one of the families that describe the learning curves of neural
 * networks (pow3 of Domhan, Springenberg and Hutter, "Speeding up Automatic Hyperparameter
 * Optimization of Deep Neural Networks by Extrapolation of Learning Curves", IJCAI 2015):
 *
 *     loss(step) = end + drop * step^-power
 *
 *     end 0.8, drop 1.0, power 1.0      1.8 at step 1, 1.13 at step 3, 0.84 at step 27
 *     end 0.5, drop 3.0, power 0.5      3.5,           2.23,           1.08
 *
 * All three are drawn, so curves cross: the second trial is better in the end, after some thousand
 * steps, and early stop at step 3 would lose it. A metric to be maximised is minus such a loss.
 */
#include "sim/loss_curve.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "sim/chance.h"

/* Of the draws. Chosen: final losses differ by a factor of 2.7 between good and bad trials, and
 * most of the loss is gone after some ten steps. */
#define END_SPREAD   0.5
#define DROP_SPREAD  0.5
#define POWER        0.7
#define POWER_SPREAD 0.3

/* Keeps the draws apart from those of run times with the same seed: "curve" in ASCII. */
#define CURVE_STREAM UINT64_C(0x6375727665)

static int parse_value(struct span text, double *ret_value)
{
    char number[40];
    *ret_value = NAN;
    if (span_is(text, "nan"))
        return 0;
    if (!span_copy(text, number, sizeof number))
        return -EINVAL;
    return parse_double(number, -DBL_MAX, DBL_MAX, ret_value) < 0 ? -EINVAL : 0;
}

int loss_curve_parse(const char *text, struct loss_curve *ret_curve)
{
    *ret_curve = (struct loss_curve){0};
    for (const char *at = text, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ";");
        if (ret_curve->n == STOP_RUNGS_MAX || parse_value((struct span){at, (size_t)(end - at)},
                                                  &ret_curve->values[ret_curve->n]) < 0)
            return -EINVAL;
        ret_curve->n++;
    }
    return 0;
}

struct loss_curve loss_curve_draw(uint64_t seed, uint64_t task)
{
    uint64_t stream = seed ^ CURVE_STREAM, index = 3 * task;
    return (struct loss_curve){
        .end = exp(END_SPREAD * chance_normal(stream, index)),
        .drop = exp(DROP_SPREAD * chance_normal(stream, index + 1)),
        .power = POWER * exp(POWER_SPREAD * chance_normal(stream, index + 2)),
    };
}

static double drawn_at(const struct loss_curve *curve, const struct halving_rule *rule, double step)
{
    double loss = curve->end + curve->drop * pow(step, -curve->power);
    return rule->is_max ? -loss : loss;
}

struct reading loss_curve_at(
    const struct loss_curve *curve, const struct halving_rule *rule, int rung)
{
    if (curve->n)
        return rung < curve->n ? reading_of(curve->values[rung]) : READING_NONE;
    return reading_of(drawn_at(curve, rule, (double)halving_step(rule, rung)));
}

double loss_curve_end_cost(
    const struct loss_curve *curve, const struct halving_rule *rule, double steps)
{
    double value = curve->n ? curve->values[curve->n - 1] : drawn_at(curve, rule, steps);
    return halving_cost(rule, value);
}
