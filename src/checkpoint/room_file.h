/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a room: host memory of the daemon's for the copy of one process's blocks
 * (daemon/rooms/room_pool.h). Its pages exist, cleared and in huge pages where the kernel has them,
 * before the process gets it: a page costs the process that touches it first, in time and in its
 * cgroup.
 *
 * Contract: the functions wait for the kernel, up to half a second for each GiB; they are for a
 * thread of their own. The daemon never reads what is in the file.
 */
#ifndef COLLOC_CHECKPOINT_ROOM_FILE_H
#define COLLOC_CHECKPOINT_ROOM_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Can its pages be huge ones? */
bool room_file_has_huge_pages(void);

/* Makes an empty file without a name. Returns its descriptor, or -errno. */
int room_file_create(void);

/*
 * Makes the pages from one offset to another, which is the file's new size. Both are multiples of
 * ROOM_FILE_GRAIN.
 *
 * node: of NUMA, where the pages should be; -1: anywhere
 *
 * Returns 0, or -errno: the file may have some of the pages.
 */
enum { ROOM_FILE_GRAIN = 2 << 20 }; /* a huge page of x86_64 */
int room_file_grow(int fd, uint64_t from, uint64_t to, int node);

/* From now on no process can change its size, of those that have it, too. Returns 0, or -errno. */
int room_file_seal(int fd);

/* Gives all its pages back, also those that a process has mapped: it gets new ones, on its own
 * account, if it touches them. */
void room_file_empty(int fd, uint64_t bytes);

#endif
