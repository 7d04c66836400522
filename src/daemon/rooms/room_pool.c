/* SPDX-License-Identifier: Apache-2.0 */
/* Which process has which room, from its first poll to its end; room_maker.c makes the files. */
#include "daemon/rooms/room_pool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/process.h"
#include "base/units.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/room_file.h"
#include "daemon/rooms/room_pool_state.h"
#include "preload/page_orders.h"

/* Chosen: a program that has just begun takes more memory with each step. */
static const int64_t STEADY_US = 3 * SECOND_US;

/* ---- rooms ---- */

static uint64_t born_of(pid_t pid)
{
    struct process_stat stat;
    return process_read_stat(pid, &stat) == 0 ? stat.start_ticks : 0;
}

static struct room *find_room(struct room_pool *pool, const struct preload_process *process)
{
    for (struct room *room = pool->rooms; room; room = room->next)
        if (room->pid == process->peer.pid && room->task == process->peer.task)
            return room;
    return NULL;
}

/* A process that has the file keeps it mapped for its next copy. */
static void recall_file(const struct room_pool *pool, const struct room *room)
{
    struct preload_process *process = NULL;
    while (pool->listener && (process = preload_next_process(pool->listener, process)))
        if (process->peer.pid == room->pid && process->peer.task == room->task)
            preload_give_room(process, PRELOAD_PLACE_POOL, 0, 0, -1);
}

void room_pool_end_file(struct room_pool *pool, struct room *room)
{
    if (room->is_handed)
        recall_file(pool, room);
    if (room->fd >= 0)
        room_maker_end(pool, room->fd, room->bytes);
    room->fd = -1;
    room->bytes = 0;
    room->is_final = room->is_handed = room->is_lent = false;
    room->used_us = 0;
}

static void remove_room(struct room_pool *pool, struct room *room)
{
    room_pool_end_file(pool, room);
    LIST_UNLINK_FROM(pool->last, room);
    pool->n_rooms--;
    free(room);
}

static struct room *add_room(struct room_pool *pool, const struct preload_process *process)
{
    uint64_t born = born_of(process->peer.pid);
    struct room *room = pool->n_rooms < ROOMS_MAX && born ? calloc(1, sizeof *room) : NULL;
    if (!room)
        return NULL;
    room->task = process->peer.task;
    room->uid = process->peer.uid;
    room->pid = process->peer.pid;
    room->born = born;
    room->fd = room->node = -1;
    LIST_APPEND(pool->last, room);
    pool->n_rooms++;
    return room;
}

/* ---- processes ---- */

void room_pool_connected(struct room_pool *pool, const struct preload_process *process)
{
    struct room *room = find_room(pool, process);
    if (!room)
        return;
    room->is_handed = false;
    if (born_of(room->pid) != room->born) /* another process with its pid: the room goes */
        room->pid = -1;
}

/* Its page says that its copy is not in the room any more. It may lie, to its own harm. */
static bool has_come_back(const struct preload_page *page)
{
    uint32_t order = atomic_load(&page->carry_order);
    bool is_ordered = (order & PRELOAD_CARRY_GOAL_MASK) == PRELOAD_CARRY_AWAY &&
                      atomic_load(&page->carry_done) != order;
    return atomic_load(&page->carry_state) == PRELOAD_CARRY_IS_HERE && !is_ordered;
}

static bool is_of_interest(const struct preload_page *page)
{
    return page_can_carry(page) && page_can_use(page, PRELOAD_PLACE_POOL) &&
           atomic_load(&page->carry_bytes);
}

static void note_blocks(struct room *room, uint64_t bytes)
{
    int64_t now_us = clock_monotonic_us();
    if (bytes > room->largest_bytes || !room->steady_us)
        room->steady_us = now_us;
    room->largest_bytes = bytes > room->largest_bytes ? bytes : room->largest_bytes;
    room->blocks_bytes = now_us - room->steady_us >= STEADY_US ? bytes : 0;
}

void room_pool_note(struct room_pool *pool, struct preload_process *process, uint64_t used_bytes,
    struct reading node)
{
    const struct preload_page *page = process->page;
    struct room *room = find_room(pool, process);
    uint64_t bytes = atomic_load(&page->carry_bytes);
    /* A page may claim anything: places for rooms are for processes that the driver has listed. */
    if (!room && used_bytes && is_of_interest(page))
        room = add_room(pool, process);
    if (!room)
        return;
    room->is_listed = true;
    room->node = node.valid ? (int)node.value : -1;
    if (room->is_lent && has_come_back(page)) {
        room->is_lent = false;
        room->used_us = clock_monotonic_us();
    }
    if (!room->is_lent)
        note_blocks(room, is_of_interest(page) ? bytes < used_bytes ? bytes : used_bytes : 0);
}

/* A process that does not speak to us now may still have its copy there. */
static void remove_ended(struct room_pool *pool)
{
    for (struct room *room = pool->rooms, *next; room; room = next) {
        next = room->next;
        bool is_listed = room->is_listed;
        room->is_listed = false;
        if (!is_listed && room != pool->maker.growing && room_maker_can_end(pool) &&
            !cuda_process_is(room->pid, room->born))
            remove_room(pool, room);
    }
}

void room_pool_review(struct room_pool *pool, struct preload_listener *listener)
{
    pool->listener = listener;
    remove_ended(pool);
    room_maker_go_on(pool);
}

void room_pool_limit(struct room_pool *pool, uint64_t idle_max_bytes)
{
    pool->idle_max_bytes = idle_max_bytes;
}

/* ---- for a copy ---- */

static bool is_large_enough(
    const struct room_pool *pool, const struct room *room, const struct preload_process *process)
{
    uint64_t bytes = atomic_load(&process->page->carry_bytes);
    return room && room != pool->maker.growing && bytes && bytes <= room->bytes &&
           page_can_use(process->page, PRELOAD_PLACE_POOL);
}

uint64_t room_pool_covers(struct room_pool *pool, const struct preload_process *process)
{
    const struct room *room = find_room(pool, process);
    return is_large_enough(pool, room, process) ? atomic_load(&process->page->carry_bytes) : 0;
}

bool room_pool_lend(struct room_pool *pool, struct preload_process *process)
{
    struct room *room = find_room(pool, process);
    if (!is_large_enough(pool, room, process) || room_file_seal(room->fd) < 0)
        return false;
    if (!room->is_handed &&
        !preload_give_room(process, PRELOAD_PLACE_POOL, room->bytes, 0, room->fd))
        return false;
    page_set_place(process->page, PRELOAD_PLACE_POOL);
    room->is_final = room->is_handed = room->is_lent = true;
    return true;
}

/* ---- for the plan, and for users ---- */

size_t room_pool_view(const struct room_pool *pool, struct room_view ret_views[ROOMS_MAX])
{
    size_t n = 0;
    for (const struct room *room = pool->rooms; room; room = room->next)
        ret_views[n++] = (struct room_view){.uid = room->uid,
            .blocks_bytes = room->blocks_bytes,
            .bytes = room->bytes,
            .is_final = room->is_final,
            .is_used = room->is_lent,
            .used_us = room->used_us};
    return n;
}

struct room_totals room_pool_totals(const struct room_pool *pool)
{
    struct room_view views[ROOMS_MAX];
    struct room_totals totals = {.max_bytes = room_maker_max_bytes(pool)};
    totals.share_bytes = room_share(views, room_pool_view(pool, views), totals.max_bytes);
    for (const struct room *room = pool->rooms; room; room = room->next) {
        totals.bytes += room->bytes;
        totals.used_bytes += room->is_lent ? room->bytes : 0;
        totals.rooms += room->bytes > 0;
    }
    return totals;
}

bool room_pool_of_task(const struct room_pool *pool, uint64_t task, struct room_of_task *ret_rooms)
{
    struct room_view views[ROOMS_MAX];
    size_t n = room_pool_view(pool, views), i = 0;
    bool is_found = false;
    *ret_rooms = (struct room_of_task){0};
    for (const struct room *room = pool->rooms; room; room = room->next, i++) {
        if (room->task != task)
            continue;
        is_found = true;
        ret_rooms->bytes += room->bytes;
        ret_rooms->used_bytes += room->is_lent ? room->bytes : 0;
        ret_rooms->missing_bytes += room_missing_bytes(&views[i]);
        ret_rooms->share_bytes = room_share(views, n, room_maker_max_bytes(pool));
        ret_rooms->user_bytes = room_bytes_of_user(views, n, room->uid);
    }
    return is_found && (ret_rooms->bytes || room_maker_max_bytes(pool));
}

/* ---- life ---- */

struct room_pool *room_pool_create(uv_loop_t *loop, const struct config *config)
{
    struct room_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->loop = loop;
    pool->config = config;
    pool->last = &pool->rooms;
    pool->idle_max_bytes = UINT64_MAX;
    return pool;
}

void room_pool_close(struct room_pool *pool)
{
    if (!pool)
        return;
    pool->is_closed = true;
    pool->listener = NULL;
}

/* The system takes all pages back that no process has mapped. */
void room_pool_destroy(struct room_pool *pool)
{
    while (pool && pool->rooms) {
        struct room *room = pool->rooms;
        pool->rooms = room->next;
        if (room->fd >= 0)
            close(room->fd);
        free(room);
    }
    if (pool)
        room_maker_fini(pool);
    free(pool);
}
