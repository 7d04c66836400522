/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy, precision, recall and F1 weighted by class frequency, and errors in bytes. */
#include "memnet/net_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memnet/examples.h"

/* ---- answers ---- */

static int answer_row(
    const struct gpumemnet_net *net, const struct task_row *row, struct net_answer *ret)
{
    float probability[GPUMEMNET_CLASSES_MAX];
    int r = gpumemnet_net_ask(net, &row->features, probability);
    if (r < 0)
        return r;
    *ret = (struct net_answer){
        .row = row,
        .class = examples_class_of(net, row->bytes),
        .edge_bytes = gpumemnet_edge_bytes(net, probability),
        .p50_bytes = gpumemnet_quantile_bytes(net, probability, 0.5),
        .p90_bytes = gpumemnet_quantile_bytes(net, probability, 0.9),
        .p99_bytes = gpumemnet_quantile_bytes(net, probability, 0.99),
    };
    ret->answered = examples_class_of(net, ret->edge_bytes - 1);
    return 0;
}

int net_answers_compute(const struct gpumemnet_net *net, const struct dataset *dataset,
    struct net_answer **ret_answers, size_t *ret_n)
{
    struct net_answer *answers = calloc(dataset->n + 1, sizeof *answers);
    size_t n = 0;
    int r = answers ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < dataset->n; i++)
        if (dataset->rows[i].features.family == net->family)
            r = answer_row(net, &dataset->rows[i], &answers[n++]);
    if (r < 0) {
        free(answers);
        return r;
    }
    *ret_answers = answers;
    *ret_n = n;
    return 0;
}

/* ---- groups ---- */

const char *net_metrics_group_name(enum net_metrics_group group)
{
    static const char *const names[NET_METRICS_GROUPS] = {
        "test", "test, Adam and fp32", "real networks"};
    return names[group];
}

static bool belongs_to_group(
    const struct net_answer *answer, enum net_metrics_group group, const char *family)
{
    const struct task_row *row = answer->row;
    bool thesis = (row->optimizer == OPTIMIZER_ADAM || row->optimizer == OPTIMIZER_ADAMW) &&
                  row->precision == PRECISION_FP32;
    if (family && strcmp(row->family, family) != 0)
        return false;
    if (group == NET_METRICS_REAL)
        return row->real;
    return !row->real && row->part == PART_TEST && (group == NET_METRICS_TEST || thesis);
}

/* ---- classes ---- */

/* For one class: rows that belong to it, rows answered with it, and rows that are both. */
struct class_counts {
    double is[GPUMEMNET_CLASSES_MAX], answered[GPUMEMNET_CLASSES_MAX], both[GPUMEMNET_CLASSES_MAX];
};

static void count_classes(
    const struct class_counts *counts, int classes, double n, struct net_metrics *ret)
{
    for (int k = 0; k < classes; k++) {
        double precision = counts->answered[k] ? counts->both[k] / counts->answered[k] : 0;
        double recall = counts->is[k] ? counts->both[k] / counts->is[k] : 0;
        double f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
        ret->accuracy += counts->both[k] / n;
        ret->precision += precision * counts->is[k] / n;
        ret->recall += recall * counts->is[k] / n;
        ret->f1 += f1 * counts->is[k] / n;
        ret->commonest = fmax(ret->commonest, counts->is[k] / n);
    }
}

/* ---- bytes ---- */

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts the values. */
static double quantile_of(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, compare_doubles);
    size_t at = (size_t)(q * (double)n);
    return values[at < n ? at : n - 1];
}

static void count_bytes(const struct net_answer *answer, double n, struct net_metrics *ret)
{
    double took = answer->row->bytes, edge = answer->edge_bytes;
    ret->under += (edge < took) / n;
    ret->over_mean += fmax(edge / took - 1, 0) / n;
    ret->covered_p50 += (took <= answer->p50_bytes) / n;
    ret->covered_p90 += (took <= answer->p90_bytes) / n;
    ret->covered_p99 += (took <= answer->p99_bytes) / n;
}

static void count_group(const struct net_answer *const *group, size_t n, int classes,
    double *errors, struct net_metrics *ret)
{
    struct class_counts counts = {{0}, {0}, {0}};
    for (size_t i = 0; i < n; i++) {
        counts.is[group[i]->class]++;
        counts.answered[group[i]->answered]++;
        counts.both[group[i]->class] += group[i]->class == group[i]->answered;
        count_bytes(group[i], (double)n, ret);
        errors[i] = fabs(group[i]->p50_bytes / group[i]->row->bytes - 1);
    }
    count_classes(&counts, classes, (double)n, ret);
    ret->p50_error_median = quantile_of(errors, n, 0.5);
    for (size_t i = 0; i < n; i++)
        errors[i] = fabs(group[i]->edge_bytes / group[i]->row->bytes - 1);
    ret->error_median = quantile_of(errors, n, 0.5);
    ret->error_p95 = quantile_of(errors, n, 0.95);
    ret->error_most = errors[n - 1];
}

int net_metrics_compute(const struct gpumemnet_net *net, const struct net_answer *answers, size_t n,
    enum net_metrics_group group, const char *family, struct net_metrics *ret_metrics)
{
    const struct net_answer **rows = calloc(n + 1, sizeof *rows);
    double *errors = calloc(n + 1, sizeof *errors);
    *ret_metrics = (struct net_metrics){0};
    if (rows && errors) {
        for (size_t i = 0; i < n; i++)
            if (belongs_to_group(&answers[i], group, family))
                rows[ret_metrics->n++] = &answers[i];
        if (ret_metrics->n)
            count_group(rows, ret_metrics->n, net->n_classes, errors, ret_metrics);
    }
    int r = rows && errors ? 0 : -ENOMEM;
    free(rows);
    free(errors);
    return r;
}
