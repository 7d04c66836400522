/* A short program run to its end, within a time: no shell, no pipe that could block either side. */
#ifndef COLLOC_GPU_RUN_H
#define COLLOC_GPU_RUN_H

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
 * Waits for the program and copies the start of what it wrote (stdout and stderr) into `output`, without white space
 * at the end. 0 with its exit status (128 + N for signal N) in *ret_status, -ETIMEDOUT, or -errno. Children that it
 * leaves behind live on.
 */
int run_wait(const struct run *run, char *output, size_t size, int *ret_status, struct fault *fault);

/* Waits until a process, anybody's, is gone. 0, or -ETIMEDOUT. */
int run_wait_gone(pid_t pid, int64_t limit_us);

#endif
