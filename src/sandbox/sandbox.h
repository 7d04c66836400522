/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program of the user's so that it leaves nothing behind: without network, on a copy of the
 * file system that vanishes, with bounded time, memory and output, and without processes that
 * outlive it. It keeps honest programs from doing harm; it is no wall against an attacker, which
 * has the user's rights anyway.
 */
#ifndef COLLOC_SANDBOX_SANDBOX_H
#define COLLOC_SANDBOX_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum { SANDBOX_TAIL_SIZE = 8192 }; /* chosen: a long traceback of Python */

struct sandbox_program {
    const char *const *words;    /* the program, found on PATH, and its arguments; ended by NULL */
    const char *const *settings; /* "NAME=value", added to the environment; ended by NULL */
    const char *folder;          /* absolute path, empty: the only one in which changes stay */
    const char *result;          /* absolute path in `folder`: the run ends when this file exists */
    int64_t limit_us;
    int64_t memory_limit_bytes;                         /* of all its processes together */
    void (*on_wait)(void *context, int64_t elapsed_us); /* called several times a second; or NULL */
    void *context;
};

/* What the sandbox cannot protect on this machine. */
enum sandbox_gap {
    SANDBOX_FILES = 1,     /* changes of files stay */
    SANDBOX_NETWORK = 2,   /* the network can be reached */
    SANDBOX_PROCESSES = 4, /* it sees and can signal the user's other processes */
};

enum sandbox_how { SANDBOX_RESULT, SANDBOX_ENDED, SANDBOX_TIME, SANDBOX_MEMORY };

struct sandbox_end {
    enum sandbox_how how;
    int status;           /* of SANDBOX_ENDED: exit status, 128 + N for signal N, 127: not found */
    unsigned gaps;        /* of enum sandbox_gap */
    int64_t output_bytes; /* of stdout and stderr together; all but the tail is dropped */
    char tail[SANDBOX_TAIL_SIZE]; /* the end of the output, and a NUL */
};

/*
 * Runs a program to its end, to its result or to a limit, and ends all its processes. Must not be
 * called in a program with other children.
 *
 * Returns 0, or -errno with a fault: it could not be started.
 */
int sandbox_run(
    const struct sandbox_program *program, struct fault *fault, struct sandbox_end *ret_end);

#endif
