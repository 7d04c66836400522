/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the parts of colloc that are Python programs, the folder python/ of the sources or of what
 * was installed. By a list of words, without a shell, as the user who calls colloc. The daemon has
 * no part in it.
 */
#ifndef COLLOC_CLI_PYTHON_H
#define COLLOC_CLI_PYTHON_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct python_program {
    const char *interpreter;  /* a path or a name on PATH; NULL: python3 */
    const char *const *words; /* the module and its arguments, NULL at their end */
    int64_t limit_us;         /* python_ask alone: killed then, with its process group, */
    size_t limit_bytes;       /* or when it has written more than this */
};

/*
 * Makes a report in a folder, `module` being one of colloc_report's. A machine without matplotlib
 * keeps its numbers: what would make the report there is then said on stderr.
 */
void python_report(const char *interpreter, const char *module, const char *folder);

/*
 * Runs a program and takes what it writes to its standard output (the caller frees it; one NUL more
 * behind it). Its standard error goes nowhere when all is well; else its last line is in the fault,
 * and what stood before it on ours. 0, or with a fault -ENOENT (no such interpreter, or no Python
 * programs of ours), -ETIMEDOUT, -EFBIG, -EIO (it failed), -errno.
 */
int python_ask(
    const struct python_program *program, struct fault *fault, char **ret_output, size_t *ret_size);

/*
 * Whether this interpreter (a path or a name on PATH) can import the module.
 *
 * Returns 0, or with a fault -ENOENT (no such interpreter), -EIO (it cannot: the last line of what
 * it says), -ETIMEDOUT, -errno.
 */
int python_imports(const char *interpreter, const char *module, struct fault *fault);

#endif
