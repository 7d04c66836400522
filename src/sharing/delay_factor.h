/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the interference model is off on a host, as the measured speeds of its tasks say: the
 * delay that tasks had beside others, over the delay that the model predicts. Pure.
 *
 *                          takes, alone = 1      delay
 *     predicted            1.30                  0.30
 *     measured             1.45                  0.45      factor 1.5
 */
#ifndef COLLOC_SHARING_DELAY_FACTOR_H
#define COLLOC_SHARING_DELAY_FACTOR_H

#include <stdbool.h>

/* A factor is no smaller and no larger. Chosen: the largest errors of predicted slowdowns are
 * factors of two (docs/measured/sharing.md). */
#define DELAY_FACTOR_MIN 0.5
#define DELAY_FACTOR_MAX 2.0

/* What the tasks of a user have been delayed by others, in all: seconds. */
struct delay_sum {
    double measured_s, predicted_s;
};

/*
 * Adds what a task was seen to take. Old delays are forgotten as new ones come.
 *
 * seconds:             for how long it was observed
 * measured, predicted: how many times as long as alone it took then. A predicted delay that is
 *                      too small to say anything is ignored, a measured one has a limit
 */
void delay_sum_add(struct delay_sum *sum, double seconds, double measured, double predicted);

/* Adds one sum to another, with the same forgetting. */
void delay_sum_merge(struct delay_sum *sum, const struct delay_sum *more);

/* Returns the factor that the sum shows; 1 where it has nothing. */
double delay_sum_factor(const struct delay_sum *sum);

/*
 * The factor of the host: the median of the users' factors and of 1; of two middle ones the one
 * that is nearer to 1. So a single user among others changes nothing by what its tasks claim.
 *
 * factors, n: of the users; sorted by the call
 * is_only:    the host has no other user than those: a single one counts
 */
double delay_factor_of_host(double *factors, int n, bool is_only);

#endif
