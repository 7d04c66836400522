/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's factor is a ratio of two sums, so a long delay counts for more than a short one, and
 * noise of single windows cancels out. To both sums PRIOR_S are added: the model is right, as far
 * as two minutes of delay say. With 10 minutes of predicted delay of which 15 were measured, the
 * factor is (15 + 2) / (10 + 2) = 1.42; after two hours of it, 1.49.
 *
 * Once a sum has MEMORY_S of predicted delay, it is scaled down to that with each addition: what is
 * older fades, for another driver or other programs may delay each other differently.
 */
#include "sharing/delay_factor.h"

#include <math.h>
#include <stdlib.h>

/* Chosen. */
#define PRIOR_S     120.0
#define MEMORY_S    (4 * 3600.0)
#define DELAY_LEAST 0.05 /* speeds of windows of five seconds vary by 2 % */
#define DELAY_MOST  4.0  /* of the predicted delay: an evaluation, say, is no slow training */

static void forget_old(struct delay_sum *sum)
{
    double part = MEMORY_S / sum->predicted_s;
    if (sum->predicted_s <= MEMORY_S)
        return;
    sum->measured_s *= part;
    sum->predicted_s *= part;
}

void delay_sum_merge(struct delay_sum *sum, const struct delay_sum *more)
{
    sum->measured_s += more->measured_s;
    sum->predicted_s += more->predicted_s;
    forget_old(sum);
}

void delay_sum_add(struct delay_sum *sum, double seconds, double measured, double predicted)
{
    double expected = predicted - 1;
    if (!(expected >= DELAY_LEAST) || isinf(expected) || !(measured > 0) || !(seconds > 0))
        return;
    double delay = fmin(fmax(measured - 1, 0), DELAY_MOST * expected);
    delay_sum_merge(sum, &(struct delay_sum){seconds * delay, seconds * expected});
}

static double limit_factor(double factor)
{
    return fmin(fmax(factor, DELAY_FACTOR_MIN), DELAY_FACTOR_MAX);
}

double delay_sum_factor(const struct delay_sum *sum)
{
    return limit_factor((sum->measured_s + PRIOR_S) / (sum->predicted_s + PRIOR_S));
}

static int compare_factors(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The i-th of the sorted factors and 1. */
static double nth_with_one(const double *factors, int n, int i)
{
    int below = 0;
    while (below < n && factors[below] < 1)
        below++;
    return i < below ? factors[i] : i == below ? 1 : factors[i - 1];
}

double delay_factor_of_host(double *factors, int n, bool is_only)
{
    if (n == 1 && is_only)
        return factors[0];
    if (n > 1)
        qsort(factors, (size_t)n, sizeof *factors, compare_factors);
    double low = nth_with_one(factors, n, n / 2), high = nth_with_one(factors, n, (n + 1) / 2);
    return fabs(log(low)) < fabs(log(high)) ? low : high;
}
