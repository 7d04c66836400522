/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors of the estimates of GPU memory: `colloc report --estimates`, `colloc estimate
 * --history`.
 *
 * A task counts when it has completed, when it had an estimate, when its peak is known, and when
 * that peak is its own: TensorFlow and JAX may take most of a GPU at their start. A task that was
 * cancelled or that failed may have ended before its peak.
 */
#ifndef COLLOC_CLI_ESTIMATE_REPORT_H
#define COLLOC_CLI_ESTIMATE_REPORT_H

#include <jansson.h>
#include <stddef.h>

struct estimate_row {
    const char *estimator;         /* borrowed from the tasks; NULL: of all */
    size_t n;                      /* tasks */
    size_t n_exceeded;             /* tasks that took more than was estimated */
    size_t n_above_p99;            /* tasks that took more than the estimate's P99, where known */
    double median, p95;            /* of the errors: |estimate - peak| / peak */
    double estimate_mib, peak_mib; /* sums, on each GPU; the former less the latter was not used */
};

struct estimate_report {
    struct estimate_row *rows; /* by estimator */
    size_t n, capacity;
    struct estimate_row total;
};

/*
 * Compares estimates and peaks.
 *
 * tasks:        TASK objects (docs/protocol.md)
 * member:       the compared one: "estimate_mib", the reserved memory, or "predicted_mib", the
 *               estimate itself
 * from_s, to_s: seconds since 1970; tasks that ended in [from_s, to_s) count
 *
 * Returns 0, or -ENOMEM. estimate_report_fini must follow in both cases.
 */
int estimate_report_make(const json_t *tasks, const char *member, double from_s, double to_s,
    struct estimate_report *ret_report);
void estimate_report_fini(struct estimate_report *report);

#endif
