/* SPDX-License-Identifier: Apache-2.0 */
/* radT's YAML specifications: a script, and values for its parameters. Each combination of values
 * is a row of a table (radt.h). */
#ifndef COLLOC_BENCH_RADT_SWEEP_H
#define COLLOC_BENCH_RADT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

/* Is this the name of a YAML file? */
bool radt_sweep_is(const char *path);

/*
 * Makes the table of a specification.
 *
 * ret_table: a comma-separated table with radT's columns; the caller frees it
 *
 * Returns 0, or -errno with a fault that names the file: -EINVAL (it is no such specification, or
 * asks for something that is not supported), -EFBIG (more combinations than a bench may have, or a
 * table of more than RADT_TABLE_MAX bytes).
 */
int radt_sweep_table(const char *path, struct fault *fault, char **ret_table);

/* The same for a text in memory. `path`: its name, for faults. */
int radt_sweep_parse(
    const char *text, size_t size, const char *path, struct fault *fault, char **ret_table);

#endif
