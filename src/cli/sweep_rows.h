/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the rows of a sweep as CSV, or continues a file that has the first of them. */
#ifndef COLLOC_CLI_SWEEP_ROWS_H
#define COLLOC_CLI_SWEEP_ROWS_H

#include "cli/sweep_grid.h"
#include "sim/sweep.h"

/* What to do with an existing file. */
enum sweep_rows { SWEEP_ROWS_REFUSE, SWEEP_ROWS_RESUME, SWEEP_ROWS_REPLACE };

/*
 * Opens the output and writes the header. A file to resume must have the first rows of this sweep;
 * an incomplete last line of it is cut off.
 *
 * path:      NULL: standard output.
 * ret_out:   for fclose.
 * ret_first: how many runs the file has already.
 *
 * Returns 0, or -errno with a fault.
 */
int sweep_rows_open(const char *path, enum sweep_rows rows, const struct sweep_grid *grid,
    struct fault *fault, FILE **ret_out, int64_t *ret_first);

/* Writes one row and flushes it. */
void sweep_rows_write(FILE *out, const char *key, const struct sweep_outcome *outcome);

#endif
