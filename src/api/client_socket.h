/* SPDX-License-Identifier: Apache-2.0 */
/* Where collocd's socket is, for api/client.c alone. */
#ifndef COLLOC_API_CLIENT_SOCKET_H
#define COLLOC_API_CLIENT_SOCKET_H

#include <stddef.h>

#include "base/fault.h"

/*
 * `wanted`, else COLLOC_SOCKET, else the first of docs/protocol.md's places that answers and
 * belongs to root or to this user (anybody may make folders in /tmp). 0 or -errno with the places
 * tried.
 */
int client_find_socket(const char *wanted, char *ret_path, size_t size, struct fault *fault);

#endif
