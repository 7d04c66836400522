/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of rooms are made and ended by a thread of the loop's pool, one piece of work at a
 * time: first the files that are to go, then what room_plan.c says. Before each piece the host's
 * free memory is read again, and what the daemon's own cgroup has left, as that pays for the pages:
 *
 *     free memory 40 GiB, reserve 2 GiB, cgroup of collocd 8 GiB left    ->  7 GiB may be made
 */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/room_file.h"
#include "checkpoint/suspend_rules.h"
#include "daemon/rooms/room_pool_state.h"

/* Chosen: rooms are not made again at once where the host was just short of memory. */
static const int64_t CALM_US = 60 * SECOND_US;

/* ---- limits ---- */

/* Beyond the limit of the daemon's own cgroup the kernel would end the daemon. */
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

static bool was_short(struct room_maker *maker, int64_t spare)
{
    int64_t now_us = clock_monotonic_us();
    if (spare < 0)
        maker->short_us = now_us;
    return maker->short_us && now_us - maker->short_us < CALM_US;
}

/* ---- work ---- */

static void work_in_thread(uv_work_t *work)
{
    struct room_pool *pool = work->data;
    struct room_maker *maker = &pool->maker;
    maker->error = 0;
    if (!maker->growing) {
        room_file_empty(maker->fd, maker->to);
        close(maker->fd);
        return;
    }
    if (maker->fd < 0)
        maker->fd = room_file_create();
    maker->error = maker->fd < 0 ? maker->fd
                                 : room_file_grow(maker->fd, maker->from, maker->to, maker->node);
}

static void note_grown(struct room_maker *maker, struct room *room)
{
    if (maker->fd >= 0)
        room->fd = maker->fd;
    if (maker->error == 0) {
        room->bytes = maker->to;
        return;
    }
    maker->short_us = clock_monotonic_us();
    log_warning("host memory for the copy of process %d cannot be made: %s", (int)room->process.pid,
        strerror(-maker->error));
}

static void on_worked(uv_work_t *work, int status)
{
    struct room_pool *pool = work->data;
    struct room *room = pool->maker.growing;
    pool->maker.is_working = false;
    pool->maker.growing = NULL;
    if (room)
        note_grown(&pool->maker, room);
    if (!pool->is_closed)
        room_maker_go_on(pool);
}

/* `room`: grows to this size; NULL: the file is ended */
static void start_work(struct room_pool *pool, struct room *room, int fd, uint64_t to)
{
    struct room_maker *maker = &pool->maker;
    maker->growing = room;
    maker->fd = fd;
    maker->node = room ? room->node : -1;
    maker->from = room ? room->bytes : 0;
    maker->to = to;
    maker->work.data = pool;
    maker->is_working = uv_queue_work(pool->loop, &maker->work, work_in_thread, on_worked) == 0;
    if (!maker->is_working)
        maker->growing = NULL;
}

static struct room_step plan_step(struct room_pool *pool)
{
    struct room_view views[ROOMS_MAX];
    struct room_limits limits = {.max_bytes = rooms_max_bytes(pool),
        .idle_max_bytes = pool->idle_max_bytes,
        .spare_bytes = spare_bytes()};
    limits.was_short = was_short(&pool->maker, limits.spare_bytes);
    return room_plan(views, rooms_view(pool, views), &limits);
}

static struct room *room_at(const struct room_pool *pool, size_t i)
{
    struct room *room = pool->rooms;
    while (i-- > 0)
        room = room->next;
    return room;
}

static void end_next(struct room_pool *pool)
{
    struct ended_file file = pool->ended[--pool->n_ended];
    start_work(pool, NULL, file.fd, file.bytes);
}

void room_maker_go_on(struct room_pool *pool)
{
    if (pool->maker.is_working)
        return;
    struct room_step step = {.kind = ROOM_STEP_END};
    while (pool->n_ended == 0 && step.kind == ROOM_STEP_END) {
        step = plan_step(pool);
        if (step.kind == ROOM_STEP_END)
            room_end_file(pool, room_at(pool, step.room));
    }
    if (pool->n_ended > 0)
        end_next(pool);
    else if (step.kind == ROOM_STEP_GROW)
        start_work(pool, room_at(pool, step.room), room_at(pool, step.room)->fd, step.bytes);
}
