/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs without a shell: a short one run to its end within a time, without a pipe that could
 * block either side; and one that goes on and is read as it writes.
 */
#ifndef COLLOC_GPU_RUN_H
#define COLLOC_GPU_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

struct run {
    const char *path;
    char *const *argv;
    char *const *envp;
    const char *input; /* its standard input; NULL: empty */
    int64_t limit_us;  /* killed then, with its process group */
};

/*
 * Waits for the program and copies the start of what it wrote (stdout and stderr) into `output`,
 * without white space at the end. 0 with its exit status (128 + N for signal N) in *ret_status,
 * -ETIMEDOUT, or -errno. Children that it leaves behind live on.
 */
int run_wait(
    const struct run *run, char *output, size_t size, int *ret_status, struct fault *fault);

/* Finds a program by its path, or on PATH when there is no slash in its name. False: there is none.
 */
bool run_find(const char *program, char *path, size_t size);

/*
 * Starts a program (without input; limit_us does not count) in a session of its own. What it
 * writes, stdout and stderr, is read from *ret_fd, which does not block; the caller closes it and
 * calls run_end. 0, or -errno with the fault.
 */
int run_start(const struct run *run, pid_t *ret_pid, int *ret_fd, struct fault *fault);

/* Kills the program with its process group, and waits for its end. */
void run_end(pid_t pid);

/* Waits until a process, anybody's, is gone. 0, or -ETIMEDOUT. */
int run_wait_gone(pid_t pid, int64_t limit_us);

#endif
