/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a Unix socket that other users may connect to. */
#ifndef COLLOC_SERVICE_SOCKET_FOLDER_H
#define COLLOC_SERVICE_SOCKET_FOLDER_H

#include <sys/types.h>

#include "base/fault.h"

enum { SOCKET_PATH_MAX = 512 }; /* longer than any socket's path */

/*
 * Makes the folder of the socket with this mode, if it does not exist. With the right to rename
 * files in the folder, a user could put another socket there and read the requests of other users:
 * such a folder is refused.
 *
 * Returns 0, or -errno with a fault; -EPERM: other users may write to the folder.
 */
int socket_folder_make(const char *socket_path, mode_t mode, struct fault *fault);

#endif
