/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the whole host over time, as `free` prints it: radT's listener of that name. */
#ifndef COLLOC_BENCH_MEMINFO_H
#define COLLOC_BENCH_MEMINFO_H

#include <stdint.h>
#include <stdio.h>

#include "base/reading.h"

/* In bytes. */
struct meminfo {
    struct reading total, used, free, shared, buffers_cache, available;
    struct reading swap_total, swap_used, swap_free;
};

/* Parses the text of /proc/meminfo. A value without its line is not known. */
void meminfo_parse(const char *text, struct meminfo *ret_memory);

/* Writes the names of the columns. */
void meminfo_print_names(FILE *csv);

/* Reads /proc/meminfo and writes a line. Unknown values are empty. */
void meminfo_sample(FILE *csv, double unix_s);

#endif
