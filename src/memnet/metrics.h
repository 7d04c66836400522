/* SPDX-License-Identifier: Apache-2.0 */
/* How good a network's answers are: as the thesis counts (classes), and as a scheduler sees it
 * (bytes). */
#ifndef COLLOC_MEMNET_METRICS_H
#define COLLOC_MEMNET_METRICS_H

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/dataset.h"

/* One question to a network. */
struct net_answer {
    const struct task_row *row; /* of the data set */
    int class, answered;
    double edge_bytes, p50_bytes, p90_bytes, p99_bytes;
};

struct metrics {
    size_t n;
    double accuracy, precision, recall, f1; /* over the classes, weighted by their rows */
    double commonest;                       /* accuracy of always answering the commonest class */
    double error_median, error_p95, error_most; /* of the edge: |answer / measured - 1| */
    double under;                               /* share of answers below what was measured */
    double over_mean; /* mean of what was reserved too much, as a share of the measured */
    double p50_error_median;
    double covered_p50, covered_p90, covered_p99; /* share of rows that took at most the quantile */
};

/* All rows of the net's family. On the heap, also empty; 0 or -ENOMEM. */
int memnet_answers(const struct gpumemnet_net *net, const struct dataset *dataset,
    struct net_answer **ret_answers, size_t *ret_n);

/* Which rows to count. */
enum metrics_of {
    METRICS_TEST,      /* drawn networks of the test part */
    METRICS_TEST_ADAM, /* of these, the thesis's own case: Adam, fp32 */
    METRICS_REAL,
    METRICS_GROUPS,
};
const char *metrics_group_name(enum metrics_of group);

/* `family` NULL: all. 0 (with n = 0 when there is no such row) or -ENOMEM. */
int metrics_count(const struct gpumemnet_net *net, const struct net_answer *answers, size_t n,
    enum metrics_of group, const char *family, struct metrics *ret_metrics);

#endif
