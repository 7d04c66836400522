/* SPDX-License-Identifier: Apache-2.0 */
/* summary.csv: the measurements of a bench, a line per group and repeat, made from the journal. */
#ifndef COLLOC_BENCH_BENCH_SUMMARY_H
#define COLLOC_BENCH_BENCH_SUMMARY_H

#include "base/fault.h"

/*
 * Reads groups.csv, tasks.csv and looks/ of the folder and replaces its summary.csv, which has no
 * lines when there is no result yet.
 *
 * Returns 0, or a fault: a file cannot be read or written, or does not belong to a
 * journal.
 */
int bench_summary_write(const char *folder, struct fault *fault);

#endif
