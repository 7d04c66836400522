/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pool share. */
#ifndef COLLOC_DAEMON_ROOMS_ROOM_POOL_STATE_H
#define COLLOC_DAEMON_ROOMS_ROOM_POOL_STATE_H

#include <sys/types.h>
#include <uv.h>

#include "daemon/config.h"
#include "daemon/rooms/room_plan.h"
#include "preload/preload_listener.h"

enum { ROOMS_MAX = 256 }; /* chosen: more are never of use to one server */

struct room {
    struct room *next, **link;
    uint64_t task;
    uid_t uid;
    struct process_id process;
    int fd, node;          /* -1: none */
    uint64_t bytes;        /* of its pages */
    uint64_t blocks_bytes; /* at the last poll; 0: its process cannot be carried, or is still new */
    uint64_t largest_bytes;
    uint64_t used_bytes;  /* by the driver, at the last poll before the copy */
    uint64_t least_bytes; /* the least by the driver since then, where it lists the process */
    int64_t steady_us;    /* since when the blocks take no more */
    int64_t on_gpu_us;    /* since when the driver lists memory of a copy; 0: it does not */
    bool is_final;        /* the process has had it */
    bool is_handed;       /* and has it from this connection */
    bool is_lent;         /* a copy is in it, or will be */
    bool is_listed;       /* by the driver, at this poll: it lives */
    int64_t used_us;
};

/* A file that is to be ended. */
struct ended_file {
    int fd;
    uint64_t bytes;
};

/* Makes and ends files by a thread, one at a time. */
struct room_maker {
    uv_work_t work;
    bool is_working;
    struct room *growing; /* NULL: a file is ended */
    int64_t short_us;     /* when the host was last short of memory; 0: never */

    /* The thread's, while it works. */
    int fd, node, error;
    uint64_t from, to;
};

struct room_pool {
    uv_loop_t *loop;
    const struct config *config;
    struct preload_listener *listener; /* NULL: not known yet */
    struct room *rooms, **last;
    int n_rooms;
    struct ended_file ended[ROOMS_MAX];
    int n_ended;
    uint64_t idle_max_bytes;
    bool was_too_small; /* for the copy of a process that gave way */
    bool is_closed;
    struct room_maker maker;
};

/* ---- room_list.c ---- */

/* Returns the room of the process; NULL: it has none. */
struct room *room_find(struct room_pool *pool, const struct preload_process *process);

/* Adds a room without a file. Returns NULL when there are too many, and no user has more than the
 * process's; or when memory is out. */
struct room *room_add(struct room_pool *pool, const struct preload_process *process);

/* The room's file is added to those that are to be ended, of which there are less than ROOMS_MAX;
 * the process may get another one. */
void room_end_file(struct room_pool *pool, struct room *room);

/* Likewise, and the room goes. */
void room_remove(struct room_pool *pool, struct room *room);

/* Returns the size of all rooms together: the setting carrier-pool, or its default. */
uint64_t rooms_max_bytes(const struct room_pool *pool);

/* Returns the room as the plan sees it. */
struct room_view room_view_of(const struct room *room);

/* Lists the rooms for the plan, in their order. Returns how many. */
size_t rooms_view(const struct room_pool *pool, struct room_view ret_views[ROOMS_MAX]);

/* ---- room_maker.c ---- */

/* Begins the next piece of work, unless one is under way. */
void room_maker_go_on(struct room_pool *pool);

#endif
