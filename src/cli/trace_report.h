/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of `colloc trace`: which jobs of a log were kept, and statistics of jobs. */
#ifndef COLLOC_CLI_TRACE_REPORT_H
#define COLLOC_CLI_TRACE_REPORT_H

#include <stdbool.h>

#include "trace/cluster_log.h"
#include "trace/statistics.h"

/* Prints "read 90 jobs, kept 60; left out: 30 outside the window" to stderr, or JSON to stdout. */
void report_kept(
    const char *name, const struct job_counts *counts, const struct job_list *kept, bool json);

/* Prints the table of `colloc trace info`, or JSON, to stdout. `dated`: times are since 1970. */
void report_statistics(
    const struct job_list *list, const struct job_statistics *statistics, bool dated, bool json);

#endif
