/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the socket of collocd or colloc-slurm; for api/client.c only. */
#ifndef COLLOC_API_CLIENT_SOCKET_H
#define COLLOC_API_CLIENT_SOCKET_H

#include <stddef.h>

#include "base/fault.h"

/* The socket of a Slurm cluster's controller (docs/slurm-controller.md). Only root can make a
 * folder in /run, so the owner of this one is the user that root lets the controller run as. */
#define SLURM_SOCKET_USUAL "/run/colloc-slurm/colloc-slurm.sock"

/*
 * Chooses `wanted`, else COLLOC_SOCKET, else the first of docs/protocol.md's places that accepts a
 * connection and belongs to root or to this user, since all users can create folders in /tmp.
 *
 * wanted: NULL or "": none
 *
 * Returns 0, or -errno with the places that were tried in the fault.
 */
int client_find_socket(const char *wanted, char *ret_path, size_t size, struct fault *fault);

#endif
