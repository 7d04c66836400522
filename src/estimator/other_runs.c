/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run shows how far the physical estimate of its network is off, but not wholly: part of that is
 * chance, such as which segments the allocator took. The more a run differs from the request, the
 * less it says. So each run has a weight, and the physical estimate as it is has the weight 1:
 *
 *     log factor = sum of weight * log(measured / physical) / (sum of weights + 1)
 *
 * Example: one run at half the batch took 8 % more than physics says. Its weight is 3.2, and the
 * estimate is raised by 3.2 / 4.2 of that, 6.1 %. A second one with another precision, which took
 * as much as physics says, has the weight 1, and 4.9 % are left.
 *
 * The weights were chosen by leaving out each run of each network in data/memory
 * (docs/measured/estimators.md); python/colloc_fit/other_runs.py has the same ones.
 */
#include "estimator/other_runs.h"

#include <math.h>

#include "estimator/physics/residual.h"

static const double own_weight = 1;       /* of the physical estimate */
static const double run_weight = 4;       /* of a run that differs in the batch by little */
static const double optimizer_factor = 4; /* by which another optimizer divides it */
static const double precision_factor = 4; /* by which another precision divides it */
static const double batch_factor = 0.25;  /* doubling the batch divides it by 1 + this */

static bool is_same_configuration(const struct past_run *a, const struct past_run *b)
{
    return a->batch == b->batch && a->optimizer == b->optimizer && a->precision == b->precision;
}

static bool is_different(int wanted, int ran, int not_given)
{
    return wanted != not_given && ran != not_given && wanted != ran;
}

double physics_of_run(
    const struct estimate_request *request, const struct past_run *run, struct physics *ret_physics)
{
    struct estimate_request other = *request;
    struct export by_rule;
    struct fault fault;
    struct estimate unused = {.note = ""};
    if (request->export) {
        by_rule = *request->export;
        by_rule.measured.batch = 0;
        other.export = &by_rule;
    }
    if (run) {
        other.batch = run->batch;
        if (run->optimizer != OPTIMIZER_NOT_GIVEN)
            other.optimizer = run->optimizer;
        if (run->precision != PRECISION_NOT_GIVEN)
            other.precision = run->precision;
    }
    bool known = physics_run(&other, &fault, &unused, ret_physics) == 0;
    return known ? ret_physics->footprint.reserved * residual_factor(ret_physics) : 0;
}

static double weight_of(const struct estimate_request *request, const struct past_run *run)
{
    double doublings = fabs(log2((double)run->batch / (double)estimate_batch(request).value));
    double weight = run_weight / (1 + batch_factor * doublings);
    if (is_different(request->optimizer, run->optimizer, OPTIMIZER_NOT_GIVEN))
        weight /= optimizer_factor;
    if (is_different(request->precision, run->precision, PRECISION_NOT_GIVEN))
        weight /= precision_factor;
    return weight;
}

static int find_least(const struct estimate_request *request, const struct other_runs *others)
{
    int least = 0;
    for (int i = 1; i < others->n; i++)
        if (weight_of(request, others->runs[i]) < weight_of(request, others->runs[least]))
            least = i;
    return least;
}

void other_runs_add(
    const struct estimate_request *request, const struct past_run *run, struct other_runs *others)
{
    for (int i = 0; i < others->n; i++)
        if (is_same_configuration(others->runs[i], run)) {
            if (run->peak_bytes > others->runs[i]->peak_bytes)
                others->runs[i] = run;
            return;
        }
    if (others->n < OTHER_RUNS_MAX) {
        others->runs[others->n++] = run;
        return;
    }
    const struct past_run **least = &others->runs[find_least(request, others)];
    if (weight_of(request, run) >= weight_of(request, *least))
        *least = run;
}

double other_runs_factor(
    const struct estimate_request *request, const struct other_runs *others, int *ret_used)
{
    double sum = 0, weights = own_weight;
    *ret_used = 0;
    for (int i = 0; i < others->n; i++) {
        struct physics physics;
        double reserved = physics_of_run(request, others->runs[i], &physics);
        double measured = (double)others->runs[i]->peak_bytes - physics.context_bytes;
        if (reserved <= 0 || measured <= 0)
            continue;
        double weight = weight_of(request, others->runs[i]);
        sum += weight * log(measured / reserved);
        weights += weight;
        (*ret_used)++;
    }
    return exp(sum / weights);
}
