/* SPDX-License-Identifier: Apache-2.0 */
#include "memnet/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memnet/examples.h"

/* ---- asking ---- */

static int ask(const struct gpumemnet_net *net, const struct task_row *row, struct net_answer *ret)
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

int memnet_answers(const struct gpumemnet_net *net, const struct dataset *dataset,
    struct net_answer **ret_answers, size_t *ret_n)
{
    struct net_answer *answers = calloc(dataset->n + 1, sizeof *answers);
    size_t n = 0;
    int r = answers ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < dataset->n; i++)
        if (dataset->rows[i].features.family == net->family)
            r = ask(net, &dataset->rows[i], &answers[n++]);
    if (r < 0) {
        free(answers);
        return r;
    }
    *ret_answers = answers;
    *ret_n = n;
    return 0;
}

/* ---- groups ---- */

const char *metrics_group_name(enum metrics_of group)
{
    static const char *const names[METRICS_GROUPS] = {
        "test", "test, Adam and fp32", "real networks"};
    return names[group];
}

static bool belongs(const struct net_answer *answer, enum metrics_of group, const char *family)
{
    const struct task_row *row = answer->row;
    bool thesis = (row->optimizer == OPTIMIZER_ADAM || row->optimizer == OPTIMIZER_ADAMW) &&
                  row->precision == PRECISION_FP32;
    if (family && strcmp(row->family, family) != 0)
        return false;
    if (group == METRICS_REAL)
        return row->real;
    return !row->real && row->part == PART_TEST && (group == METRICS_TEST || thesis);
}

/* ---- classes ---- */

/* Of each class: rows that are of it, that were said to be, and that are both. */
struct tally {
    double is[GPUMEMNET_CLASSES_MAX], said[GPUMEMNET_CLASSES_MAX], both[GPUMEMNET_CLASSES_MAX];
};

static void count_classes(const struct tally *tally, int classes, double n, struct metrics *ret)
{
    for (int k = 0; k < classes; k++) {
        double precision = tally->said[k] ? tally->both[k] / tally->said[k] : 0;
        double recall = tally->is[k] ? tally->both[k] / tally->is[k] : 0;
        double f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
        ret->accuracy += tally->both[k] / n;
        ret->precision += precision * tally->is[k] / n;
        ret->recall += recall * tally->is[k] / n;
        ret->f1 += f1 * tally->is[k] / n;
        ret->commonest = fmax(ret->commonest, tally->is[k] / n);
    }
}

/* ---- bytes ---- */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts. */
static double quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, compare);
    size_t at = (size_t)(q * (double)n);
    return values[at < n ? at : n - 1];
}

static void count_bytes(const struct net_answer *answer, double n, struct metrics *ret)
{
    double took = answer->row->bytes, edge = answer->edge_bytes;
    ret->under += (edge < took) / n;
    ret->over_mean += fmax(edge / took - 1, 0) / n;
    ret->covered_p50 += (took <= answer->p50_bytes) / n;
    ret->covered_p90 += (took <= answer->p90_bytes) / n;
    ret->covered_p99 += (took <= answer->p99_bytes) / n;
}

static void count_group(const struct net_answer *const *group, size_t n, int classes,
    double *errors, struct metrics *ret)
{
    struct tally tally = {{0}, {0}, {0}};
    for (size_t i = 0; i < n; i++) {
        tally.is[group[i]->class]++;
        tally.said[group[i]->answered]++;
        tally.both[group[i]->class] += group[i]->class == group[i]->answered;
        count_bytes(group[i], (double)n, ret);
        errors[i] = fabs(group[i]->p50_bytes / group[i]->row->bytes - 1);
    }
    count_classes(&tally, classes, (double)n, ret);
    ret->p50_error_median = quantile(errors, n, 0.5);
    for (size_t i = 0; i < n; i++)
        errors[i] = fabs(group[i]->edge_bytes / group[i]->row->bytes - 1);
    ret->error_median = quantile(errors, n, 0.5);
    ret->error_p95 = quantile(errors, n, 0.95);
    ret->error_most = errors[n - 1];
}

int metrics_count(const struct gpumemnet_net *net, const struct net_answer *answers, size_t n,
    enum metrics_of group, const char *family, struct metrics *ret_metrics)
{
    const struct net_answer **rows = calloc(n + 1, sizeof *rows);
    double *errors = calloc(n + 1, sizeof *errors);
    *ret_metrics = (struct metrics){0};
    if (rows && errors) {
        for (size_t i = 0; i < n; i++)
            if (belongs(&answers[i], group, family))
                rows[ret_metrics->n++] = &answers[i];
        if (ret_metrics->n)
            count_group(rows, ret_metrics->n, net->n_classes, errors, ret_metrics);
    }
    int r = rows && errors ? 0 : -ENOMEM;
    free(rows);
    free(errors);
    return r;
}
