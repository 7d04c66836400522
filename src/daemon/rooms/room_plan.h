/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which room the pool makes larger or ends next (room_pool.h). Pure.
 *
 *     max 40 GiB    room   wanted   bytes
 *                   a      16       16      in use: its process is away
 *                   b      16        9      grows next
 *                   c      20        0      does not fit beside a and b: c's copy will be its own
 *
 * Users have equal shares: the setting, divided by the users who have processes here. What one does
 * not take, others may.
 *
 *     1. Rooms within their user's share come first, in the order in which their processes came.
 *        While one of them lacks space, rooms that are not in use end of users above their share,
 *        and no room grows beyond a share.
 *     2. Then all others, in the same order.
 *
 * None is ended for another one of the same user, or of a user within its share: processes of which
 * not all fit would otherwise take each other's rooms in turns. A room is ended, too, when its
 * process needs a larger one, or when the host is short of memory.
 */
#ifndef COLLOC_DAEMON_ROOMS_ROOM_PLAN_H
#define COLLOC_DAEMON_ROOMS_ROOM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct room_view {
    uid_t uid;             /* of its process */
    uint64_t blocks_bytes; /* of its process; 0: it cannot be carried now */
    uint64_t bytes;        /* of the pages that exist */
    bool is_final;         /* the process has had the file: it does not grow any more */
    bool is_used;          /* a copy is in it, or will be at once */
    int64_t used_us;       /* when a copy was last in it; 0: never */
};

struct room_limits {
    uint64_t max_bytes;      /* of all rooms */
    uint64_t idle_max_bytes; /* of those that are not in use */
    int64_t spare_bytes;     /* of the host's free memory; negative: it is short by so much */
    bool was_short;          /* a moment ago: nothing grows yet */
};

struct room_step {
    enum { ROOM_STEP_NONE, ROOM_STEP_GROW, ROOM_STEP_END } kind;
    size_t room;
    uint64_t bytes; /* of GROW: to this size */
};

/* Chosen: half a second of work, then the free memory of the host is read again. */
#define ROOM_STEP_BYTES (UINT64_C(1) << 30)

/* Returns the size of a room for blocks of this size: a little more than they need now, as
 * trainings cache memory, in whole grains. */
uint64_t room_size(uint64_t blocks_bytes);

/* Returns how much the room lacks for its process's blocks; 0: nothing, or it does not grow. */
uint64_t room_missing_bytes(const struct room_view *room);

/* Returns what all rooms of the user have. */
uint64_t room_bytes_of_user(const struct room_view *rooms, size_t n, uid_t uid);

/* Returns each user's share: the setting, divided by the users with a room, or with a process that
 * could have one. */
uint64_t room_share(const struct room_view *rooms, size_t n, uint64_t max_bytes);

struct room_step room_plan(
    const struct room_view *rooms, size_t n, const struct room_limits *limits);

#endif
