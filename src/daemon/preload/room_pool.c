/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of work at a time: files that are to go first, then what room_plan.c says. */
#include "daemon/preload/room_pool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/process.h"
#include "base/units.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/suspend_rules.h"
#include "daemon/preload/room_file.h"
#include "daemon/preload/room_plan.h"
#include "preload/page_orders.h"

/* Chosen: rooms are not made again at once where the host was just short of memory. */
static const int64_t CALM_US = 60 * SECOND_US;
/* Chosen: a program that has just begun takes more memory with each step. */
static const int64_t STEADY_US = 3 * SECOND_US;
/* Chosen: enough for a usual training; a server whose tasks take turns wants more. */
enum { HOST_PART = 16 };
/* Chosen: more are never of use to one server. */
enum { ROOMS_MAX = 256 };

struct room {
    struct room *next, **link;
    uint64_t task;
    uid_t uid;
    pid_t pid;
    uint64_t born;         /* clock ticks since boot: with the pid it names one process for ever */
    int fd, node;          /* -1: none */
    uint64_t bytes;        /* of its pages */
    uint64_t blocks_bytes; /* at the last poll; 0: its process cannot be carried, or is still new */
    uint64_t largest_bytes;
    int64_t steady_us; /* since when the blocks take no more */
    bool is_final;     /* the process has had it */
    bool is_handed;    /* and has it from this connection */
    bool is_lent;      /* a copy is in it, or will be */
    bool is_listed;    /* at this poll */
    int64_t used_us;
};

struct room_pool {
    uv_loop_t *loop;
    const struct config *config;
    struct preload_listener *listener; /* NULL: not known yet */
    struct room *rooms, **last;
    int n_rooms;
    uint64_t idle_max_bytes;
    int64_t short_us; /* when the host was last short of memory; 0: never */
    bool is_closed;

    /* The thread's, while it works. */
    uv_work_t work;
    bool is_working;
    struct room *growing; /* NULL: a file is ended */
    int fd, node, error;
    uint64_t from, to;

    struct ending { /* files that are to be ended */
        int fd;
        uint64_t bytes;
    } endings[ROOMS_MAX];
    int n_endings;
};

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

static bool may_add_ending(const struct room_pool *pool)
{
    return pool->n_endings < ROOMS_MAX;
}

/* A process that has the file keeps it mapped for its next copy. */
static void recall_file(const struct room_pool *pool, const struct room *room)
{
    struct preload_process *process = NULL;
    while (pool->listener && (process = preload_next_process(pool->listener, process)))
        if (process->peer.pid == room->pid && process->peer.task == room->task)
            preload_give_room(process, PRELOAD_PLACE_POOL, 0, 0, -1);
}

/* The room's file goes; the process may get another one. */
static void end_file(struct room_pool *pool, struct room *room)
{
    if (room->is_handed)
        recall_file(pool, room);
    if (room->fd >= 0)
        pool->endings[pool->n_endings++] = (struct ending){room->fd, room->bytes};
    room->fd = -1;
    room->bytes = 0;
    room->is_final = room->is_handed = room->is_lent = false;
    room->used_us = 0;
}

static void remove_room(struct room_pool *pool, struct room *room)
{
    end_file(pool, room);
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

void room_pool_note(
    struct room_pool *pool, struct preload_process *process, uint64_t used_bytes, int node)
{
    const struct preload_page *page = process->page;
    struct room *room = find_room(pool, process);
    uint64_t bytes = atomic_load(&page->carry_bytes);
    if (!room && is_of_interest(page))
        room = add_room(pool, process);
    if (!room)
        return;
    room->is_listed = true;
    room->node = node;
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
        if (!is_listed && room != pool->growing && may_add_ending(pool) &&
            !cuda_process_is(room->pid, room->born))
            remove_room(pool, room);
    }
}

/* ---- limits ---- */

static uint64_t host_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t max_bytes(const struct room_pool *pool)
{
    if (!pool->config->carrier)
        return 0;
    int64_t set = pool->config->carrier_pool;
    return set ? (uint64_t)set : host_bytes() / HOST_PART;
}

/* Also by the daemon's own cgroup, which pays for the pages: beyond its limit the kernel would end
 * the daemon. */
static int64_t spare_bytes(void)
{
    struct reading available = host_memory_available();
    struct reading left = cgroup_memory_left_of(getpid(), "");
    if (!available.valid || !left.valid)
        return 0;
    int64_t spare = (int64_t)available.value - suspend_host_reserve((int64_t)available.value);
    double of_cgroup = left.value - (double)ROOM_STEP_BYTES;
    return of_cgroup < (double)spare ? (int64_t)of_cgroup : spare;
}

static bool was_short(struct room_pool *pool, int64_t spare)
{
    int64_t now_us = clock_monotonic_us();
    if (spare < 0)
        pool->short_us = now_us;
    return pool->short_us && now_us - pool->short_us < CALM_US;
}

/* ---- work ---- */

static void begin_next_work(struct room_pool *pool);

static void work_in_thread(uv_work_t *work)
{
    struct room_pool *pool = work->data;
    pool->error = 0;
    if (!pool->growing) {
        room_file_empty(pool->fd, pool->to);
        close(pool->fd);
        return;
    }
    if (pool->fd < 0)
        pool->fd = room_file_create();
    pool->error = pool->fd < 0 ? pool->fd
                               : room_file_grow(pool->fd, pool->from, pool->to, pool->node);
}

static void note_grown(struct room_pool *pool, struct room *room)
{
    if (pool->fd >= 0)
        room->fd = pool->fd;
    if (pool->error == 0) {
        room->bytes = pool->to;
        return;
    }
    pool->short_us = clock_monotonic_us();
    log_warning("host memory for the copy of process %d cannot be made: %s", (int)room->pid,
        strerror(-pool->error));
}

static void on_worked(uv_work_t *work, int status)
{
    struct room_pool *pool = work->data;
    struct room *room = pool->growing;
    pool->is_working = false;
    pool->growing = NULL;
    if (room)
        note_grown(pool, room);
    if (!pool->is_closed)
        begin_next_work(pool);
}

static void start_work(struct room_pool *pool, struct room *room, int fd, uint64_t to)
{
    pool->growing = room;
    pool->fd = fd;
    pool->node = room ? room->node : -1;
    pool->from = room ? room->bytes : 0;
    pool->to = to;
    pool->is_working = uv_queue_work(pool->loop, &pool->work, work_in_thread, on_worked) == 0;
    if (!pool->is_working)
        pool->growing = NULL;
}

static struct room *room_at(const struct room_pool *pool, size_t i)
{
    struct room *room = pool->rooms;
    while (i-- > 0)
        room = room->next;
    return room;
}

static struct room_step plan_step(struct room_pool *pool)
{
    struct room_view views[ROOMS_MAX];
    size_t n = 0;
    struct room_limits limits = {.max_bytes = max_bytes(pool),
        .idle_max_bytes = pool->idle_max_bytes,
        .spare_bytes = spare_bytes()};
    limits.was_short = was_short(pool, limits.spare_bytes);
    for (const struct room *room = pool->rooms; room; room = room->next)
        views[n++] = (struct room_view){.uid = room->uid,
            .blocks_bytes = room->blocks_bytes,
            .bytes = room->bytes,
            .is_final = room->is_final,
            .is_used = room->is_lent,
            .used_us = room->used_us};
    return room_plan(views, n, &limits);
}

static void begin_next_work(struct room_pool *pool)
{
    if (pool->n_endings > 0) {
        struct ending ending = pool->endings[--pool->n_endings];
        start_work(pool, NULL, ending.fd, ending.bytes);
        return;
    }
    struct room_step step = plan_step(pool);
    if (step.kind == ROOM_STEP_NONE)
        return;
    struct room *room = room_at(pool, step.room);
    if (step.kind == ROOM_STEP_GROW) {
        start_work(pool, room, room->fd, step.bytes);
        return;
    }
    end_file(pool, room);
    begin_next_work(pool);
}

void room_pool_review(struct room_pool *pool, struct preload_listener *listener)
{
    pool->listener = listener;
    remove_ended(pool);
    if (!pool->is_working)
        begin_next_work(pool);
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
    return room && room != pool->growing && bytes && bytes <= room->bytes &&
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

/* ---- for users ---- */

struct room_totals room_pool_totals(const struct room_pool *pool)
{
    struct room_totals totals = {.max_bytes = max_bytes(pool)};
    for (const struct room *room = pool->rooms; room; room = room->next) {
        totals.bytes += room->bytes;
        totals.used_bytes += room->is_lent ? room->bytes : 0;
        totals.rooms += room->bytes > 0;
    }
    return totals;
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
    pool->work.data = pool;
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
    for (int i = 0; pool && i < pool->n_endings; i++)
        close(pool->endings[i].fd);
    free(pool);
}
