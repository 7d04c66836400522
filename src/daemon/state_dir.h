/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below the daemon's state folder that more than one of its parts uses. */
#ifndef COLLOC_DAEMON_STATE_DIR_H
#define COLLOC_DAEMON_STATE_DIR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { STATE_PATH_SIZE = 600 }; /* bytes; a state folder has at most 511 */

/* The folder of one attempt, numbered from 1: "STATE_DIR/tasks/ID/ATTEMPT". */
static inline void state_dir_attempt(
    const char *state_dir, uint64_t task, int attempt, char *path, size_t size)
{
    snprintf(path, size, "%s/tasks/%llu/%d", state_dir, (unsigned long long)task, attempt);
}

#endif
