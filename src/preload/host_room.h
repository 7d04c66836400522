/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory for the copy of a process's GPU memory: its own, or a file that the daemon has made
 * and touched for it. Both begin at a multiple of a huge page, and where the kernel has huge pages
 * both get them, since to touch small ones takes three times as long. A child of the process
 * inherits neither, and no core dump has them.
 */
#ifndef COLLOC_PRELOAD_HOST_ROOM_H
#define COLLOC_PRELOAD_HOST_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: there is none. */
struct host_room {
    char *host;     /* whole huge pages begin here */
    uint64_t bytes; /* from there */
    void *mapping;  /* with what comes before */
    size_t mapping_bytes;
};

/* Make room of `bytes`: of the process's own memory, whose pages come as they are touched; or of a
 * file, from an offset that is a multiple of a huge page. Return false when it cannot be had. */
bool host_room_make(struct host_room *room, uint64_t bytes);
bool host_room_map(struct host_room *room, int fd, uint64_t offset, uint64_t bytes);

/* Unmaps it, and forgets it. */
void host_room_drop(struct host_room *room);

#endif
