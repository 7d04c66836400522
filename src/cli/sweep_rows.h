/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a sweep as CSV, and going on with a file that holds the first of them. */
#ifndef COLLOC_CLI_SWEEP_ROWS_H
#define COLLOC_CLI_SWEEP_ROWS_H

#include "cli/sweep_grid.h"
#include "sim/sweep.h"

/* What becomes of rows that are there already. */
enum sweep_rows { SWEEP_ROWS_REFUSE, SWEEP_ROWS_RESUME, SWEEP_ROWS_REPLACE };

/*
 * Opens the file (standard output when `path` is NULL) and writes the head. To be resumed, a file
 * that is there stays, but for a last line that is not whole: it must begin as this grid's does,
 * and *ret_first is how many of the runs it holds. 0 or -errno with a fault.
 */
int sweep_rows_open(const char *path, enum sweep_rows rows, const struct sweep_grid *grid,
    struct fault *fault, FILE **ret_out, int64_t *ret_first);

/* One row, out at once. */
void sweep_rows_write(FILE *out, const char *key, const struct sweep_outcome *outcome);

#endif
