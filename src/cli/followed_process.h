/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process beside which what its task writes is read, until it ends: by `colloc metric` and
 * `colloc step`.
 */
#ifndef COLLOC_CLI_FOLLOWED_PROCESS_H
#define COLLOC_CLI_FOLLOWED_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/client.h"

struct followed_process {
    int pidfd; /* -1: none is followed, or it has ended */
    bool has_ended;
};

/* Follows the process; 0: none, which never ends. Its end is that of the caller, too, which ignores
 * SIGTERM from now on: the shim sends both. */
void followed_process_init(struct followed_process *process, pid_t pid);

void followed_process_fini(struct followed_process *process);

/* Waits for the end, or that long. Notes and returns whether it has ended. */
bool followed_process_wait(struct followed_process *process, int64_t ms);

/* Opens the client of a daemon that may be away. NULL: the process has ended before that. */
struct client *followed_process_open_client(struct followed_process *process);

/* How long to pause after a reading that began at start_us (clock_monotonic_us), in ms: a second at
 * least, and twenty times as long as the reading took, so that a slow file system is not kept
 * busy; ten seconds at most. */
int64_t reading_pause_ms(int64_t start_us);

#endif
