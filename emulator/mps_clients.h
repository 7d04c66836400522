/* SPDX-License-Identifier: Apache-2.0 */
/* The server that MPS clients share through, seen from the control daemon. */
#ifndef COLLOC_EMULATOR_MPS_CLIENTS_H
#define COLLOC_EMULATOR_MPS_CLIENTS_H

#include <stdio.h>

#include "emulator/world.h"

/*
 * Starts nvidia-cuda-mps-server, which lies beside the calling program, and waits until it is on
 * its GPUs. It ends when the caller does, or by a signal. Its pid, or -errno.
 */
pid_t mps_server_start(void);

/* Its clients' pids, `separator` after each, on one seat or (NULL) anywhere. Under the lock.
 * Returns how many. */
int mps_server_clients(
    const struct world *world, pid_t server, const struct seat *seat, char separator, FILE *out);

#endif
