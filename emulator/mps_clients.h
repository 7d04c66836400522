/* SPDX-License-Identifier: Apache-2.0 */
/* The MPS server and its clients, for the control daemon. */
#ifndef COLLOC_EMULATOR_MPS_CLIENTS_H
#define COLLOC_EMULATOR_MPS_CLIENTS_H

#include <stdio.h>

#include "emulator/world.h"

/*
 * Starts nvidia-cuda-mps-server, the file beside the calling program, and waits until it is in the
 * table of processes. It ends when the caller does, or by a signal.
 *
 * Returns its pid, or -errno.
 */
pid_t mps_server_start(void);

/*
 * Prints the pids of a server's clients, `separator` after each. Between world_enter and
 * world_leave.
 *
 * seat: only clients on that seat; NULL: all.
 *
 * Returns how many there are.
 */
int mps_server_clients(
    const struct world *world, pid_t server, const struct seat *seat, char separator, FILE *out);

#endif
