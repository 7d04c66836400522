/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a task's output that reports a metric, "epoch {step}: val_loss={value}", or marks
 * steps of its training, "step {step}:". */
#ifndef COLLOC_TASKFILE_METRIC_PATTERN_H
#define COLLOC_TASKFILE_METRIC_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/text.h"

enum {
    METRIC_LINE_MAX = 4096,  /* chosen: bytes of a line that are compared */
    LINE_STEPS_MAX = 1000000 /* as the daemon takes them (daemon/preload/task_steps.c) */
};

/* What a line reports. */
struct metric_report {
    bool has_step;
    int64_t step;
    double value; /* may be NaN or infinite */
};

/* Checks that a pattern has {value} once and {step} at most once. Returns 0, or -EINVAL with a
 * fault. */
int metric_pattern_check(const char *pattern, struct fault *fault);

/* Checks a pattern of lines that mark steps: it has some text, and {step} and {value} at most once.
 * Returns 0, or -EINVAL with a fault. */
int step_pattern_check(const char *pattern, struct fault *fault);

/*
 * Compares a line with a checked pattern, which may match anywhere in it:
 *
 *     {step}     a whole number from 0 on        {value}    a number, nan or inf
 *     *          any text                        a blank    one or more blanks
 *
 * Returns whether it matches; the first match counts.
 */
bool metric_pattern_match(const char *pattern, struct span line, struct metric_report *ret_report);

/* The last step of which a line said the number. */
struct step_count {
    bool has_last;
    int64_t last;
};

/*
 * Counts the steps that a line marks. With {step} in the pattern they are those since the last such
 * line; the first line, and one whose number is not higher (the next epoch), marks none.
 *
 * pattern: checked by step_pattern_check
 *
 * Returns their number, 0 where the line is another one.
 */
int64_t step_count_line(struct step_count *count, const char *pattern, struct span line);

#endif
