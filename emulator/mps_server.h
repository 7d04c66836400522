/* The pretend MPS server: the process through which clients share, seen on its GPUs by the memory it holds. */
#ifndef COLLOC_EMULATOR_MPS_SERVER_H
#define COLLOC_EMULATOR_MPS_SERVER_H

#include <stdio.h>

#include "emulator/world.h"

/*
 * Forks the server for the GPUs in CUDA_VISIBLE_DEVICES and waits until it is on them. It ends when the caller does, or
 * by a signal. Its pid, or -errno.
 */
pid_t mps_server_start(struct world *world);

/* Its clients' pids, `separator` after each, on one seat or (NULL) anywhere. Under the lock. Returns how many. */
int mps_server_clients(const struct world *world, pid_t server, const struct seat *seat, char separator, FILE *out);

#endif
