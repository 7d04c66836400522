/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a program as a child, and knowing whether it could be started. */
#ifndef COLLOC_BASE_SPAWN_H
#define COLLOC_BASE_SPAWN_H

#include <sys/types.h>

/*
 * Runs `words[0]`, looked for on PATH, after `prepare` has done in the new process what is to be
 * done there. For callers without threads. 0 with the child and a pidfd of it, which the caller
 * waits for and closes; or -errno, and there is no child: -ENOENT, -EACCES, ...
 */
int spawn_program(char *const *words, void (*prepare)(void *context), void *context, pid_t *ret_pid,
    int *ret_pidfd);

#endif
