/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quality of a network's answers: by class, as in the thesis, and by bytes, as a scheduler needs.
 */
#ifndef COLLOC_MEMNET_NET_METRICS_H
#define COLLOC_MEMNET_NET_METRICS_H

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/dataset.h"

/* A network's answer for one row. */
struct net_answer {
    const struct task_row *row; /* of the data set */
    int class, answered;
    double edge_bytes, p50_bytes, p90_bytes, p99_bytes;
};

struct net_metrics {
    size_t n;
    double accuracy, precision, recall, f1; /* over the classes, weighted by their rows */
    double commonest; /* accuracy of always answering the most frequent class */
    double error_median, error_p95, error_most; /* of edge_bytes: |answer / measured - 1| */
    double under;                               /* fraction of answers below the measured memory */
    double over_mean; /* mean over-reservation as a fraction of the measured memory */
    double p50_error_median;
    double covered_p50, covered_p90,
        covered_p99; /* fraction of rows with at most the quantile's memory */
};

/* Answers all rows of the network's family. The caller frees *ret_answers, also when it is empty.
 * Returns 0 or -ENOMEM. */
int net_answers_compute(const struct gpumemnet_net *net, const struct dataset *dataset,
    struct net_answer **ret_answers, size_t *ret_n);

/* The rows over which metrics are computed. */
enum net_metrics_group {
    NET_METRICS_TEST,      /* random networks of the test part */
    NET_METRICS_TEST_ADAM, /* of these, the thesis's case: Adam, fp32 */
    NET_METRICS_REAL,
    NET_METRICS_GROUPS,
};
const char *net_metrics_group_name(enum net_metrics_group group);

/* Computes the metrics of a group. `family`: NULL: all. Returns 0 (n = 0 without such rows) or
 * -ENOMEM. */
int net_metrics_compute(const struct gpumemnet_net *net, const struct net_answer *answers, size_t n,
    enum net_metrics_group group, const char *family, struct net_metrics *ret_metrics);

#endif
