/* SPDX-License-Identifier: Apache-2.0 */
/* First what must go, then what may grow. */
#include "daemon/preload/room_plan.h"

/* Chosen: a training that has made its first steps grows by less. */
enum { MARGIN_DIVISOR = 16 };
#define GRAIN (UINT64_C(64) << 20)

uint64_t room_size(uint64_t blocks_bytes)
{
    return (blocks_bytes + blocks_bytes / MARGIN_DIVISOR + GRAIN - 1) / GRAIN * GRAIN;
}

struct sums {
    uint64_t all, idle;
};

static struct sums add_up(const struct room_view *rooms, size_t n)
{
    struct sums sums = {0};
    for (size_t i = 0; i < n; i++) {
        sums.all += rooms[i].bytes;
        sums.idle += rooms[i].is_used ? 0 : rooms[i].bytes;
    }
    return sums;
}

/* The one that was used longest ago; never used ones first, and of them the last to come. Returns
 * `n`: none can go. */
static size_t find_least_useful(const struct room_view *rooms, size_t n)
{
    size_t found = n;
    for (size_t i = 0; i < n; i++)
        if (!rooms[i].is_used && rooms[i].bytes &&
            (found == n || rooms[i].used_us <= rooms[found].used_us))
            found = i;
    return found;
}

static bool is_too_small(const struct room_view *room)
{
    return !room->is_used && room->is_final && room->blocks_bytes > room->bytes;
}

static bool may_grow(
    const struct room_view *room, const struct sums *sums, const struct room_limits *limits)
{
    uint64_t size = room_size(room->blocks_bytes);
    if (room->is_final || room->is_used || size <= room->bytes)
        return false;
    uint64_t more = size - room->bytes;
    return sums->all + more <= limits->max_bytes && sums->idle + more <= limits->idle_max_bytes;
}

static uint64_t next_size(const struct room_view *room)
{
    uint64_t size = room_size(room->blocks_bytes);
    return size - room->bytes > ROOM_STEP_BYTES ? room->bytes + ROOM_STEP_BYTES : size;
}

struct room_step room_plan(
    const struct room_view *rooms, size_t n, const struct room_limits *limits)
{
    struct sums sums = add_up(rooms, n);
    size_t least = find_least_useful(rooms, n);
    bool is_over = sums.idle > limits->idle_max_bytes || sums.all > limits->max_bytes;
    if (least < n && (is_over || limits->spare_bytes < 0))
        return (struct room_step){.kind = ROOM_STEP_END, .room = least};
    for (size_t i = 0; i < n; i++)
        if (is_too_small(&rooms[i]))
            return (struct room_step){.kind = ROOM_STEP_END, .room = i};
    for (size_t i = 0; i < n && !limits->was_short; i++) {
        uint64_t to = next_size(&rooms[i]);
        if (may_grow(&rooms[i], &sums, limits) &&
            (int64_t)(to - rooms[i].bytes) <= limits->spare_bytes)
            return (struct room_step){.kind = ROOM_STEP_GROW, .room = i, .bytes = to};
    }
    return (struct room_step){.kind = ROOM_STEP_NONE};
}
