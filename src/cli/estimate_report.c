/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How good the estimates were: the errors of all tasks are collected once, ordered by estimator and
 * size, and each row reads its quantiles from its part of them.
 */
#include "cli/estimate_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/task_view.h"

/* Of one task. */
struct outcome {
    const char *estimator;
    double error, estimate_mib, peak_mib;
    bool above_p99;
};

static bool read_outcome(
    const json_t *task, const char *member, double from_s, double to_s, struct outcome *outcome)
{
    double ended_s = member_number(task, "ended_at", -1);
    double gpus = member_number(task, "gpus_requested", 1);
    outcome->estimator = member_text(task, "estimator", NULL);
    outcome->estimate_mib = member_number(task, member, -1);
    outcome->peak_mib = member_number(task, "mem_peak_mib", -1) / gpus;
    outcome->above_p99 = outcome->peak_mib > member_number(task, "p99_mib", INFINITY);
    bool counts = strcmp(member_text(task, "state", ""), "COMPLETED") == 0 && ended_s >= from_s &&
                  ended_s < to_s && !json_is_true(json_object_get(task, "preallocated")) &&
                  outcome->estimator && outcome->estimate_mib >= 0 && outcome->peak_mib > 0;
    outcome->error = counts ? fabs(outcome->estimate_mib - outcome->peak_mib) / outcome->peak_mib
                            : 0;
    return counts;
}

static int by_error(const void *a, const void *b)
{
    double one = ((const struct outcome *)a)->error, other = ((const struct outcome *)b)->error;
    return (one > other) - (one < other);
}

static int by_estimator_and_error(const void *a, const void *b)
{
    int order = strcmp(
        ((const struct outcome *)a)->estimator, ((const struct outcome *)b)->estimator);
    return order ? order : by_error(a, b);
}

/* The least error that at least `part` of the outcomes do not exceed. */
static double quantile_of(const struct outcome *sorted, size_t n, double part)
{
    size_t rank = (size_t)ceil(part * (double)n);
    return sorted[rank > 0 ? rank - 1 : 0].error;
}

/* `sorted`: by error; not empty. */
static struct estimate_row row_of(const char *estimator, const struct outcome *sorted, size_t n)
{
    struct estimate_row row = {.estimator = estimator,
        .n = n,
        .median = quantile_of(sorted, n, 0.5),
        .p95 = quantile_of(sorted, n, 0.95)};
    for (size_t i = 0; i < n; i++) {
        row.estimate_mib += sorted[i].estimate_mib;
        row.peak_mib += sorted[i].peak_mib;
        row.n_exceeded += sorted[i].peak_mib > sorted[i].estimate_mib;
        row.n_above_p99 += sorted[i].above_p99;
    }
    return row;
}

/* Sorted by estimator first, so that each one's outcomes are a slice of the list, then all by their
 * error, for the total. */
static int add_rows(struct outcome *outcomes, size_t n, struct estimate_report *report)
{
    qsort(outcomes, n, sizeof *outcomes, by_estimator_and_error);
    for (size_t begin = 0, end; begin < n; begin = end) {
        const char *name = outcomes[begin].estimator;
        for (end = begin; end < n && strcmp(outcomes[end].estimator, name) == 0;)
            end++;
        if (ARRAY_APPEND(report->rows, report->n, report->capacity,
                row_of(name, outcomes + begin, end - begin)) < 0)
            return -ENOMEM;
    }
    qsort(outcomes, n, sizeof *outcomes, by_error);
    report->total = row_of(NULL, outcomes, n);
    return 0;
}

int estimate_report_make(const json_t *tasks, const char *member, double from_s, double to_s,
    struct estimate_report *ret_report)
{
    size_t i, n = 0;
    json_t *task;
    *ret_report = (struct estimate_report){0};
    struct outcome *outcomes = calloc(json_array_size(tasks) + 1, sizeof *outcomes);
    if (!outcomes)
        return -ENOMEM;
    json_array_foreach(tasks, i, task) {
        n += read_outcome(task, member, from_s, to_s, &outcomes[n]);
    }
    int r = n > 0 ? add_rows(outcomes, n, ret_report) : 0;
    free(outcomes);
    return r;
}

void estimate_report_fini(struct estimate_report *report)
{
    free(report->rows);
    *report = (struct estimate_report){0};
}
