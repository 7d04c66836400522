/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Early stop of the tasks of an array by successive halving: ASHA, with its stopping rule (Li et
 * al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020). Pure: values and
 * counts in, a rank out.
 */
#ifndef COLLOC_CORE_HALVING_H
#define COLLOC_CORE_HALVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STOP_METRIC_SIZE = 64, /* of the metric's name with its NUL; chosen */
    STOP_FACTOR_MAX = 100, /* chosen: one in a hundred goes on */
    STOP_RUNGS_MAX = 40,   /* chosen: with factor 2, step 3 * 2^39 is beyond any training */
};

/* Of a step. Chosen: a product with the largest factor does not overflow. */
#define STOP_STEP_MAX (INT64_C(1) << 53)

struct halving_rule {
    int factor;         /* eta: one in `factor` goes on at each rung; 0: there is no rule */
    bool is_max;        /* a larger value is better */
    int64_t first_step; /* of the lowest rung; the next is at `factor` times that, and so on */
    char metric[STOP_METRIC_SIZE];
};

/* What a task's report at a rung came to. */
struct halving_rank {
    int rung;       /* from 0 on */
    int rank;       /* 1 is the best */
    int of;         /* reports at this rung so far, this one included */
    bool is_losing; /* it is not among the best of / factor, and not the best */
};

/* Returns the number of the highest rung that a step has reached, from 0 on; -1: none. */
int halving_rung(const struct halving_rule *rule, int64_t step);

/* Returns the step at which the rung is. */
int64_t halving_step(const struct halving_rule *rule, int rung);

/* Returns the value as a cost: less is better. A value that is not finite is the worst. */
double halving_cost(const struct halving_rule *rule, double value);

/*
 * Ranks a report at a rung.
 *
 * costs: of the n reports at the rung so far, without this one, in any order
 */
struct halving_rank halving_judge(
    const struct halving_rule *rule, int rung, const double *costs, size_t n, double cost);

#endif
