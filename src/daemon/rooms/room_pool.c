/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process gets a room, from its first poll to its end, and whose copy goes there; room_list.c
 * has the rooms, room_maker.c makes their files.
 *
 * A room with a copy in it is not ended, so whether there is one decides what is left for others.
 * The process's page says that, and may lie: what the driver lists decides after a while.
 *
 *     bytes by the driver    8 GiB    0.5 GiB    0.5 GiB    8 GiB ...        8 GiB
 *     the page               here     away       away       away             away
 *     the room               lent     in use     in use     in use, at most  idle: another user
 *                                                           two time limits  may get its space
 *                                                           of an order
 */
#include "daemon/rooms/room_pool.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/order_limits.h"
#include "checkpoint/room_file.h"
#include "daemon/rooms/room_pool_state.h"
#include "preload/page_orders.h"

/* Chosen: a program that has just begun takes more memory with each step. */
static const int64_t STEADY_US = 3 * SECOND_US;

/* Chosen: a process whose memory is away may still have contexts and modules made. */
static const uint64_t CONTEXT_BYTES = UINT64_C(1) << 30;

/* ---- processes ---- */

void room_pool_connected(struct room_pool *pool, const struct preload_process *process)
{
    struct room *room = room_find(pool, process);
    if (room)
        room->is_handed = false;
}

/* Its page says that its copy is not in the room any more. It may lie, to its own harm. */
static bool says_it_is_back(const struct preload_page *page)
{
    uint32_t order = atomic_load(&page->carry_order);
    bool is_ordered = (order & PRELOAD_CARRY_GOAL_MASK) == PRELOAD_CARRY_AWAY &&
                      atomic_load(&page->carry_done) != order;
    return atomic_load(&page->carry_state) == PRELOAD_CARRY_IS_HERE && !is_ordered;
}

/*
 * Does the driver list so much memory of the process that its copy cannot be in the room? Either it
 * never left, or it has come back.
 */
static bool lists_its_memory(struct room *room, uint64_t used_bytes)
{
    if (used_bytes && used_bytes < room->least_bytes)
        room->least_bytes = used_bytes;
    return used_bytes && (used_bytes >= room->used_bytes / 2 + CONTEXT_BYTES ||
                             used_bytes >= room->least_bytes + CONTEXT_BYTES);
}

/* An order to leave has a time limit, and so has one to return: after both, memory that is on the
 * GPU stays there. */
static bool is_back_by_driver(struct room *room, uint64_t used_bytes)
{
    int64_t now_us = clock_monotonic_us();
    if (!lists_its_memory(room, used_bytes))
        room->on_gpu_us = 0;
    else if (!room->on_gpu_us)
        room->on_gpu_us = now_us;
    return room->on_gpu_us &&
           now_us - room->on_gpu_us >= 2 * carry_limit_us((double)room->used_bytes);
}

/* While its memory is away, what the driver lists of it says nothing of its size. */
static bool is_of_interest(const struct preload_page *page)
{
    return atomic_load(&page->carry_state) == PRELOAD_CARRY_IS_HERE && page_can_carry(page) &&
           page_can_use(page, PRELOAD_PLACE_POOL) && atomic_load(&page->carry_bytes);
}

static void note_blocks(struct room *room, uint64_t bytes)
{
    int64_t now_us = clock_monotonic_us();
    if (bytes > room->largest_bytes || !room->steady_us)
        room->steady_us = now_us;
    room->largest_bytes = bytes > room->largest_bytes ? bytes : room->largest_bytes;
    room->blocks_bytes = now_us - room->steady_us >= STEADY_US ? bytes : 0;
}

static void note_return(struct room *room)
{
    room->is_lent = false;
    room->used_us = clock_monotonic_us();
}

void room_pool_take_back(struct room_pool *pool, const struct preload_process *process)
{
    struct room *room = room_find(pool, process);
    if (room && room->is_lent)
        note_return(room);
}

void room_pool_note(struct room_pool *pool, struct preload_process *process, uint64_t used_bytes,
    struct reading node)
{
    const struct preload_page *page = process->page;
    struct room *room = room_find(pool, process);
    uint64_t bytes = atomic_load(&page->carry_bytes);
    /* A page may claim anything: rooms are for processes that the driver has listed. It lists pids,
     * and another process may have that of one whose connection a child of it still holds. */
    bool is_it = used_bytes && is_of_interest(page) &&
                 cuda_process_is(process->peer.pid, process->peer.born);
    if (!room && is_it)
        room = room_add(pool, process);
    if (!room)
        return;
    room->is_listed = is_it;
    room->node = node.valid ? (int)node.value : -1;
    if (room->is_lent && (is_back_by_driver(room, used_bytes) || says_it_is_back(page)))
        note_return(room);
    if (room->is_lent)
        return;
    room->used_bytes = used_bytes;
    note_blocks(room, is_it ? bytes < used_bytes ? bytes : used_bytes : 0);
}

/* A process that does not speak to us now may still have its copy there. */
static void remove_ended(struct room_pool *pool)
{
    for (struct room *room = pool->rooms, *next; room; room = next) {
        next = room->next;
        bool is_listed = room->is_listed;
        room->is_listed = false;
        if (!is_listed && room != pool->maker.growing && pool->n_ended < ROOMS_MAX &&
            !cuda_process_is(room->process.pid, room->process.born))
            room_remove(pool, room);
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

/* The page may claim another size the next moment: it is read once. */
static uint64_t covered_bytes(
    const struct room_pool *pool, const struct room *room, const struct preload_process *process)
{
    uint64_t bytes = atomic_load(&process->page->carry_bytes);
    bool is_large_enough = room && room != pool->maker.growing && bytes <= room->bytes;
    return is_large_enough && page_can_use(process->page, PRELOAD_PLACE_POOL) ? bytes : 0;
}

uint64_t room_pool_covers(struct room_pool *pool, const struct preload_process *process)
{
    return covered_bytes(pool, room_find(pool, process), process);
}

/* The pool has no space for what the process's room lacks, also where none is made yet because the
 * process has not been steady for long. */
static bool is_too_small_for(const struct room_pool *pool, const struct room *of)
{
    struct room_view view = room_view_of(of);
    view.blocks_bytes = of->largest_bytes;
    uint64_t missing = room_missing_bytes(&view), bytes = 0;
    for (const struct room *room = pool->rooms; room; room = room->next)
        bytes += room->bytes;
    return missing > 0 && bytes + missing > rooms_max_bytes(pool);
}

bool room_pool_lend(struct room_pool *pool, struct preload_process *process)
{
    struct room *room = room_find(pool, process);
    pool->was_too_small |= room && is_too_small_for(pool, room);
    if (!covered_bytes(pool, room, process) || room_file_seal(room->fd) < 0)
        return false;
    if (!room->is_handed &&
        !preload_give_room(process, PRELOAD_PLACE_POOL, room->bytes, 0, room->fd))
        return false;
    page_set_place(process->page, PRELOAD_PLACE_POOL);
    room->is_final = room->is_handed = room->is_lent = true;
    room->least_bytes = UINT64_MAX - CONTEXT_BYTES;
    room->on_gpu_us = 0;
    return true;
}

/* ---- for users ---- */

struct room_totals room_pool_totals(const struct room_pool *pool)
{
    struct room_view views[ROOMS_MAX];
    struct room_totals totals = {.max_bytes = rooms_max_bytes(pool)};
    totals.share_bytes = room_share(views, rooms_view(pool, views), totals.max_bytes);
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
    size_t n = rooms_view(pool, views), i = 0;
    bool is_found = false;
    *ret_rooms = (struct room_of_task){0};
    for (const struct room *room = pool->rooms; room; room = room->next, i++) {
        if (room->task != task)
            continue;
        is_found = true;
        ret_rooms->bytes += room->bytes;
        ret_rooms->used_bytes += room->is_lent ? room->bytes : 0;
        ret_rooms->missing_bytes += room_missing_bytes(&views[i]);
        ret_rooms->share_bytes = room_share(views, n, rooms_max_bytes(pool));
        ret_rooms->user_bytes = room_bytes_of_user(views, n, room->uid);
    }
    return is_found && (ret_rooms->bytes || rooms_max_bytes(pool));
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
    for (int i = 0; pool && i < pool->n_ended; i++)
        close(pool->ended[i].fd);
    free(pool);
}
