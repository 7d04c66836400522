/* SPDX-License-Identifier: Apache-2.0 */
/* Which process keeps a GPU open. */
#ifndef COLLOC_EXEC_DEVICE_HOLDERS_H
#define COLLOC_EXEC_DEVICE_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct device_search {
    int minor;           /* N of /dev/nvidiaN */
    pid_t session;       /* only processes of this session; 0: of any */
    const pid_t *others; /* `n_others` processes that are not searched for, such as those that the
                            driver lists */
    size_t n_others;
};

/*
 * Finds a process that has the device file open. Reads the links in /proc/PID/fd only, which never
 * wait for the process or for a file system. Those of other users' processes are shown to root.
 *
 * Returns its id; 0: none was found.
 */
pid_t device_holder_find(const struct device_search *search);

/* Does this process see the ids of all processes of the machine, as the driver lists them? Not so
 * in a container with its own pid namespace. */
bool device_holder_sees_all_pids(void);

#endif
