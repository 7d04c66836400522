/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report at a rung is compared with those that others made there before. With factor 3, the best
 * third goes on:
 *
 *     rung at step 3    0.9           rank 1 of 1: goes on, there is nothing to compare with
 *                       0.5           rank 1 of 2: goes on
 *                       0.7           rank 2 of 3: 3/3 = 1 may go on: stopped
 *                       0.4 0.6 0.3   rank 1 of 4, 3 of 5 (stopped), 1 of 6
 *
 * Nothing waits for others, as in the paper: a task is judged once at each rung, when it reports,
 * and one that went on is not stopped later by what others report at that rung. At least the best
 * goes on. Equal values have the same rank.
 */
#include "core/halving.h"

#include <math.h>

int halving_rung(const struct halving_rule *rule, int64_t step)
{
    int rung = -1;
    for (int64_t at = rule->first_step; at <= step && rung + 1 < STOP_RUNGS_MAX;
         at *= rule->factor) {
        rung++;
        if (at > STOP_STEP_MAX / rule->factor)
            break;
    }
    return rung;
}

int64_t halving_step(const struct halving_rule *rule, int rung)
{
    int64_t step = rule->first_step;
    for (int i = 0; i < rung && step <= STOP_STEP_MAX / rule->factor; i++)
        step *= rule->factor;
    return step;
}

double halving_cost(const struct halving_rule *rule, double value)
{
    if (!isfinite(value))
        return INFINITY;
    return rule->is_max ? -value : value;
}

struct halving_rank halving_judge(
    const struct halving_rule *rule, int rung, const double *costs, size_t n, double cost)
{
    struct halving_rank rank = {.rung = rung, .rank = 1, .of = (int)n + 1};
    for (size_t i = 0; i < n; i++)
        rank.rank += costs[i] < cost;
    int kept = rank.of / rule->factor;
    rank.is_losing = rank.rank > (kept > 1 ? kept : 1);
    return rank;
}
