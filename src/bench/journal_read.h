/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the groups of a journal (journal.h) with their epochs. */
#ifndef COLLOC_BENCH_JOURNAL_READ_H
#define COLLOC_BENCH_JOURNAL_READ_H

#include "base/fault.h"
#include "bench/measured_group.h"

/*
 * Calls `on_group` for each line of groups.csv, in their order. The group is valid during the call.
 * A folder without a journal has no groups.
 *
 * Returns 0, or -errno with a fault: a file cannot be read, or a value is not possible.
 */
int journal_read(const char *folder,
    void (*on_group)(const struct measured_group *group, void *data), void *data,
    struct fault *fault);

#endif
