/* SPDX-License-Identifier: Apache-2.0 */
/* The rooms of the pool, one for each process, and the files that are no longer theirs, which wait
 * for the thread of room_maker.c to end them. */
#include <stdlib.h>
#include <unistd.h>

#include "base/list.h"
#include "daemon/rooms/room_pool_state.h"

/* By default the pool has a sixteenth of the host's memory, and a quarter once that was too small
 * for a task that gave way. Chosen: enough for a usual training; where tasks give way, for the
 * largest of several. */
enum { HOST_PART = 16, HOST_PART_WANTED = 4 };

/* ---- rooms ---- */

static bool is_of(const struct room *room, const struct preload_peer *peer)
{
    return room->task == peer->task && process_id_is(room->process, preload_peer_id(peer));
}

struct room *room_find(struct room_pool *pool, const struct preload_process *process)
{
    for (struct room *room = pool->rooms; room; room = room->next)
        if (is_of(room, &process->peer))
            return room;
    return NULL;
}

/* A process that has the file keeps it mapped for its next copy. */
static void recall_file(const struct room_pool *pool, const struct room *room)
{
    struct preload_process *process = NULL;
    while ((process = preload_next_of_process(pool->listener, room->task, room->process, process)))
        preload_give_room(process, PRELOAD_PLACE_POOL, 0, 0, -1);
}

void room_end_file(struct room_pool *pool, struct room *room)
{
    if (room->is_handed)
        recall_file(pool, room);
    if (room->fd >= 0)
        pool->ended[pool->n_ended++] = (struct ended_file){room->fd, room->bytes};
    room->fd = -1;
    room->bytes = 0;
    room->is_final = room->is_handed = room->is_lent = false;
    room->used_us = 0;
}

void room_remove(struct room_pool *pool, struct room *room)
{
    room_end_file(pool, room);
    LIST_UNLINK_FROM(pool->last, room);
    pool->n_rooms--;
    free(room);
}

static int count_rooms_of(const struct room_pool *pool, uid_t uid)
{
    int n = 0;
    for (const struct room *room = pool->rooms; room; room = room->next)
        n += room->uid == uid;
    return n;
}

/* All places are taken: the user with the most gives one up, its latest without a copy, for one who
 * has fewer. */
static void make_place(struct room_pool *pool, uid_t uid)
{
    struct room *spare = NULL;
    int most = count_rooms_of(pool, uid) + 2;
    for (struct room *room = pool->rooms; room; room = room->next) {
        int n = count_rooms_of(pool, room->uid);
        if (n < most || room->is_lent || room == pool->maker.growing)
            continue;
        most = n;
        spare = room;
    }
    if (spare && pool->n_ended < ROOMS_MAX)
        room_remove(pool, spare);
}

struct room *room_add(struct room_pool *pool, const struct preload_process *process)
{
    if (pool->n_rooms == ROOMS_MAX)
        make_place(pool, process->peer.uid);
    struct room *room = pool->n_rooms < ROOMS_MAX ? calloc(1, sizeof *room) : NULL;
    if (!room)
        return NULL;
    room->task = process->peer.task;
    room->uid = process->peer.uid;
    room->process = preload_peer_id(&process->peer);
    room->fd = room->node = -1;
    LIST_APPEND(pool->last, room);
    pool->n_rooms++;
    return room;
}

/* ---- for the plan, and for users ---- */

static uint64_t host_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t rooms_max_bytes(const struct room_pool *pool)
{
    if (!pool->config->carrier || !pool->config->core.can_suspend)
        return 0;
    int64_t set = pool->config->carrier_pool;
    unsigned part = pool->was_too_small ? HOST_PART_WANTED : HOST_PART;
    return set ? (uint64_t)set : host_bytes() / part;
}

struct room_view room_view_of(const struct room *room)
{
    return (struct room_view){.uid = room->uid,
        .blocks_bytes = room->blocks_bytes,
        .bytes = room->bytes,
        .is_final = room->is_final,
        .is_used = room->is_lent,
        .used_us = room->used_us};
}

size_t rooms_view(const struct room_pool *pool, struct room_view ret_views[ROOMS_MAX])
{
    size_t n = 0;
    for (const struct room *room = pool->rooms; room; room = room->next)
        ret_views[n++] = room_view_of(room);
    return n;
}
