/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a task's output that reports a metric: "epoch {step}: val_loss={value}". */
#ifndef COLLOC_TASKFILE_METRIC_PATTERN_H
#define COLLOC_TASKFILE_METRIC_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/text.h"

enum { METRIC_LINE_MAX = 4096 }; /* chosen: bytes of a line that are compared */

/* What a line reports. */
struct metric_report {
    bool has_step;
    int64_t step;
    double value; /* may be NaN or infinite */
};

/* Checks that a pattern has {value} once and {step} at most once. Returns 0, or -EINVAL with a
 * fault. */
int metric_pattern_check(const char *pattern, struct fault *fault);

/*
 * Compares a line with a checked pattern, which may match anywhere in it:
 *
 *     {step}     a whole number from 0 on        {value}    a number, nan or inf
 *     *          any text                        a blank    one or more blanks
 *
 * Returns whether it matches; the first match counts.
 */
bool metric_pattern_match(const char *pattern, struct span line, struct metric_report *ret_report);

#endif
