/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs programs without a shell: a short one to its end within a time limit, with files in memory
 * instead of pipes, so that neither side can block; or a long-running one whose output is read as
 * it arrives.
 */
#ifndef COLLOC_GPU_RUN_H
#define COLLOC_GPU_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

struct program {
    const char *path;
    char *const *argv;
    char *const *envp;
    const char *input; /* its standard input; NULL: empty */
    int64_t limit_us;  /* killed then, with its process group */
};

enum { PROGRAMS_STUCK_MAX = 8 }; /* chosen */

/*
 * Runs a program and waits for its end. Children that it leaves behind live on. A program that does
 * not end when it is killed, because a driver hangs, is left, and reaped by a later run.
 *
 * output:     the start of its stdout and stderr, trimmed; `size` bytes with the NUL
 * ret_status: exit status, 128 + N for signal N
 *
 * Returns 0, -ETIMEDOUT (it was killed), -EBUSY (PROGRAMS_STUCK_MAX were left and have not ended),
 * or -errno; the last two with a fault.
 */
int program_run(
    const struct program *run, char *output, size_t size, int *ret_status, struct fault *fault);

/* Finds a program by its path, or on PATH when its name has no slash. Returns false when there is
 * none. */
bool program_find(const char *program, char *path, size_t size);

/*
 * Starts a program in its own session, with empty input and without a time limit.
 *
 * ret_fd: its stdout and stderr, non-blocking; the caller closes it and calls program_kill
 *
 * Returns 0, or -errno with a fault.
 */
int program_start(const struct program *run, pid_t *ret_pid, int *ret_fd, struct fault *fault);

/* Kills the program with its process group. Returns whether it has ended; if not, it is in a driver
 * that does not answer, and program_has_ended is to be asked later. */
bool program_kill(pid_t pid);
bool program_has_ended(pid_t pid);

/* Waits until a process of any user has ended. Returns 0 or -ETIMEDOUT. */
int process_wait_gone(pid_t pid, int64_t limit_us);

#endif
