/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: host memory that the daemon holds ready for copies of GPU memory (docs/carrier.md). A
 * process whose memory can be carried has a room in it: a file for it alone, which a thread makes
 * and touches while the process computes. When its blocks leave, the process gets the file and
 * copies them there. So its cgroup is not charged for the copy, and no page is touched while the
 * GPU waits.
 *
 *     process comes     file made, 1 GiB at a time     AWAY: handed over, a copy in it
 *                       (room_plan.h decides)          HERE: kept for its next AWAY
 *                                                      it ends: given back to the system
 *
 * Contract:
 * 1. A file is made for one process and never given to another one: nothing of a user's can be in a
 *    file that another user gets, and a process that keeps its file keeps its own bytes only.
 * 2. The daemon reads no file, and maps none that a process has had.
 * 3. Files are made and ended by a thread of the loop's pool, never by the loop.
 * 4. A room with a copy in it is not ended while its process lives. What the page says of that may
 *    be wrong: once the process has answered an order to return, or the driver has listed its
 *    memory on the GPU for two time limits of an order, there is no copy. If the daemon is killed,
 *    the process keeps the file mapped until its memory is back. The next daemon counts that memory
 *    as it counts all memory of suspended tasks, and has a new room made afterwards.
 */
#ifndef COLLOC_DAEMON_ROOMS_ROOM_POOL_H
#define COLLOC_DAEMON_ROOMS_ROOM_POOL_H

#include <uv.h>

#include "base/reading.h"
#include "daemon/config.h"
#include "preload/preload_listener.h"

struct room_pool;

/* Creates the pool. Both are borrowed. Returns NULL when memory is out. */
struct room_pool *room_pool_create(uv_loop_t *loop, const struct config *config);

/* Stops; work of its thread is awaited by the loop. NULL is fine. */
void room_pool_close(struct room_pool *pool);

/* Releases the pool once the loop has run after room_pool_close. NULL is fine. */
void room_pool_destroy(struct room_pool *pool);

/* A process has connected. If it had a room before, it is given that file again. */
void room_pool_connected(struct room_pool *pool, const struct preload_process *process);

/*
 * Notes a process at a poll of the GPUs.
 *
 * used_bytes: its GPU memory by the driver: its page may claim any size
 * node:       the NUMA node of its GPU
 */
void room_pool_note(struct room_pool *pool, struct preload_process *process, uint64_t used_bytes,
    struct reading node);

/* All processes were noted: ends rooms of processes that have ended, and begins the next work.
 * The listener, which is borrowed, has the processes. */
void room_pool_review(struct room_pool *pool, struct preload_listener *listener);

/* Limits the host memory of rooms that are not in use: suspend-memory-max, without the memory of
 * suspended tasks. */
void room_pool_limit(struct room_pool *pool, uint64_t idle_max_bytes);

/* Returns how many bytes of a process's copy would lie in its room: all of it, or 0. */
uint64_t room_pool_covers(struct room_pool *pool, const struct preload_process *process);

/*
 * Has the next copy of the process go to its room.
 *
 * Returns false: it has none, or that is too small, or the process does not read.
 */
bool room_pool_lend(struct room_pool *pool, struct preload_process *process);

/* The process has answered that its memory is back: whatever its page says later, no copy is in the
 * room until it is lent again. */
void room_pool_take_back(struct room_pool *pool, const struct preload_process *process);

/* For users. */
struct room_totals {
    uint64_t max_bytes;   /* the setting carrier-pool, or its default */
    uint64_t bytes;       /* of all rooms */
    uint64_t used_bytes;  /* of those with a copy in them */
    uint64_t share_bytes; /* of each user; what one does not take, others may */
    int rooms;
};
struct room_totals room_pool_totals(const struct room_pool *pool);

/*
 * The rooms of a task, or of a job, for users.
 *
 * Returns false: none of its processes has one, or could have one.
 */
struct room_of_task {
    uint64_t bytes;         /* of its rooms */
    uint64_t used_bytes;    /* of those with a copy in them */
    uint64_t missing_bytes; /* for what its processes have on the GPU now */
    uint64_t user_bytes;    /* of all rooms of its user */
    uint64_t share_bytes;   /* of each user; what one does not take, others may */
};
bool room_pool_of_task(const struct room_pool *pool, uint64_t task, struct room_of_task *ret_rooms);

#endif
