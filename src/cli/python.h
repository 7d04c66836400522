/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the parts of colloc that are Python programs: modules of the folder python/, of the
 * installation or of the source tree. They run without a shell and as the calling user. The daemon
 * never runs them.
 */
#ifndef COLLOC_CLI_PYTHON_H
#define COLLOC_CLI_PYTHON_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

struct python_program {
    const char *interpreter;  /* a path or a name on PATH; NULL: python3 */
    const char *const *words; /* the module and its arguments; ended by NULL */
    int64_t limit_us;         /* after this time it is killed, with its process group, */
    size_t limit_bytes;       /* or when it has written more than this */
};

/*
 * Starts a module in the background, in a new session.
 *
 * words:   the module and its arguments, NULL-terminated.
 * input:   its standard input; the caller closes its own copy.
 * ret_pid: the caller waits for it.
 *
 * Returns 0 or -errno; -ENOENT when colloc's Python modules are not installed.
 */
int python_feed(const char *const *words, int input, pid_t *ret_pid);

/*
 * Runs a module to its end, which prints what goes wrong.
 *
 * words:  the module and its arguments, NULL-terminated.
 * output: its standard output.
 *
 * Returns 0, or with a fault: -ENOENT when colloc's Python modules or the interpreter are not
 * installed, -EIO when it failed, with an empty text if it has printed why, or -errno.
 */
int python_write(const char *const *words, int output, struct fault *fault);

/*
 * Becomes a program: replaces this process.
 *
 * interpreter: a path or a name on PATH; NULL: python3.
 * words:       the module and its arguments; ended by NULL.
 *
 * Returns only with a fault: -ENOENT (no such interpreter, or colloc's modules are not installed),
 * or -errno.
 */
int python_become(const char *interpreter, const char *const *words, struct fault *fault);

/*
 * Runs a program and returns its standard output. If it fails, the last line of its standard error
 * is in the fault, and the lines before are printed to stderr.
 *
 * ret_output: `ret_size` bytes and a NUL, for the caller to free.
 *
 * Returns 0, or with a fault: -ENOENT (no such interpreter, or colloc's modules are not installed),
 * -ETIMEDOUT (limit_us), -EFBIG (limit_bytes), -EIO (it failed), or -errno.
 */
int python_ask(
    const struct python_program *program, struct fault *fault, char **ret_output, size_t *ret_size);

#endif
