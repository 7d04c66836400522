/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts of one kind whose figures differ from GPU to GPU. One or two figures are written as they
 * are; with more, a text for each would repeat its words, and the reader wants their range:
 *
 *     GPUs 0 to 6: 1.2 GiB to 30.5 GiB short; GPU 7: lost
 */
#ifndef COLLOC_CORE_EXPLAIN_VERDICT_RANGE_H
#define COLLOC_CORE_EXPLAIN_VERDICT_RANGE_H

#include "core/policy.h"
#include "core/text_line.h"

struct verdict_range {
    int n_values; /* that differ: 0, 1, 2, or 3 for more */
    double least, most;
    double limit;      /* of all */
    bool has_no_range; /* of another kind than those that a range is written for */
};

/* Adds the verdict of a GPU to the range of its kind, which is zeroed before the first. */
void verdict_range_add(struct verdict_range *range, const struct verdict *verdict);

/* Returns whether the range is to be written instead of its verdicts. */
bool verdict_range_is_wide(const struct verdict_range *range);

/* Writes "1.2 GiB to 30.5 GiB short". */
void verdict_range_write(
    struct text_line *line, enum verdict_kind kind, const struct verdict_range *range);

#endif
