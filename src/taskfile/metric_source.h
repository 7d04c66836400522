/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task's metric is read: --metric-from (docs/sweeps.md). */
#ifndef COLLOC_TASKFILE_METRIC_SOURCE_H
#define COLLOC_TASKFILE_METRIC_SOURCE_H

#include <stdbool.h>

#include "base/fault.h"

enum metric_source_kind { METRIC_TENSORBOARD, METRIC_MLFLOW, METRIC_OUTPUT };

struct metric_source {
    enum metric_source_kind kind;
    const char *place; /* a folder; or the pattern of a line. In the text that was parsed */
};

/* Parses "tensorboard:FOLDER", "mlflow:FOLDER" or "output:PATTERN". Returns 0, or -EINVAL with a
 * fault. */
int metric_source_parse(const char *text, struct fault *fault, struct metric_source *ret_source);

/*
 * Checks a source of the tasks of an array: event files do not say which task wrote them, so each
 * task needs a folder of its index (%a) or id (%j).
 *
 * Returns 0, or -EINVAL with a fault.
 */
int metric_source_check(const char *text, struct fault *fault);

#endif
