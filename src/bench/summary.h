/* SPDX-License-Identifier: Apache-2.0 */
/* What a bench measured, a line per group and repeat: summary.csv, made anew from the journal. */
#ifndef COLLOC_BENCH_SUMMARY_H
#define COLLOC_BENCH_SUMMARY_H

#include "base/fault.h"

/*
 * Reads groups.csv, tasks.csv and looks/ of the folder and replaces its summary.csv.
 *
 * Returns 0, or a fault: a file cannot be read or written, or is not of a journal.
 */
int summary_write(const char *folder, struct fault *fault);

#endif
