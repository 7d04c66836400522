/* SPDX-License-Identifier: Apache-2.0 */
/* Whose home a container has mounted. Pure. */
#ifndef COLLOC_DAEMON_OUTSIDE_MOUNTED_HOME_H
#define COLLOC_DAEMON_OUTSIDE_MOUNTED_HOME_H

#include <stdbool.h>

#include "base/text.h"

enum { HOME_USER_SIZE = 33 }; /* with a NUL; useradd(8) takes names of 32 letters */

/*
 * Finds the first folder below a home in /home that the container has mounted.
 *
 * container, host: /proc/PID/mountinfo of a process in the container, and of pid 1
 * id:              the first digits of the container's id: files of the container itself, which its
 *                  manager mounts, are not its owner's
 * ret_user:        the name of the home: "ada" of "/home/ada/data"
 *
 * Returns whether there is one.
 */
bool mounted_home_find(
    const char *container, const char *host, const char *id, char ret_user[HOME_USER_SIZE]);

#endif
