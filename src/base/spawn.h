/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program as a child process, and reports when exec fails. */
#ifndef COLLOC_BASE_SPAWN_H
#define COLLOC_BASE_SPAWN_H

#include <sys/types.h>

/*
 * Starts argv[0], found on PATH. For callers without threads.
 *
 * prepare:   called in the new process before exec
 * ret_pid:   the caller waits for it
 * ret_pidfd: the caller closes it
 *
 * Returns 0; or -errno (-ENOENT, -EACCES, ...), and there is no child.
 */
int spawn_program(char *const *argv, void (*prepare)(void *context), void *context, pid_t *ret_pid,
    int *ret_pidfd);

#endif
