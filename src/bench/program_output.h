/* SPDX-License-Identifier: Apache-2.0 */
/* What a short program prints, such as a list of packages. */
#ifndef COLLOC_BENCH_PROGRAM_OUTPUT_H
#define COLLOC_BENCH_PROGRAM_OUTPUT_H

#include "base/fault.h"

/* Bytes of the output that are kept. Chosen: far more than the list of a large environment. */
enum { PROGRAM_OUTPUT_MAX = 1 << 20 };

/*
 * Runs a program of PATH to its end, for a minute at most.
 *
 * argv:       the program's name and its arguments, then NULL
 * fault:      may be NULL
 * ret_text:   its stdout and stderr, trimmed; the caller frees it; NULL: it did not run to its end
 * ret_status: exit status, 128 + N for signal N
 *
 * Returns 0, -ENOENT (no such program), -ETIMEDOUT, or another -errno, with a fault.
 */
int program_output_read(
    const char *const *argv, struct fault *fault, char **ret_text, int *ret_status);

#endif
