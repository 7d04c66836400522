/* SPDX-License-Identifier: Apache-2.0 */
/* First what must go, then what may grow. */
#include "daemon/rooms/room_plan.h"

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

/* ---- users ---- */

uint64_t room_bytes_of_user(const struct room_view *rooms, size_t n, uid_t uid)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += rooms[i].uid == uid ? rooms[i].bytes : 0;
    return bytes;
}

static bool is_of_a_user(const struct room_view *room)
{
    return room->bytes || room->blocks_bytes;
}

uint64_t room_share(const struct room_view *rooms, size_t n, uint64_t max_bytes)
{
    uint64_t users = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < i && !(rooms[k].uid == rooms[i].uid && is_of_a_user(&rooms[k])))
            k++;
        users += k == i && is_of_a_user(&rooms[i]);
    }
    return users ? max_bytes / users : max_bytes;
}

/* ---- what goes ---- */

/* The one that was used longest ago of those whose users have more than `above_bytes`; never used
 * ones first, and of them the last to come. Returns `n`: none can go. */
static size_t find_least_useful(const struct room_view *rooms, size_t n, uint64_t above_bytes)
{
    size_t found = n;
    for (size_t i = 0; i < n; i++)
        if (!rooms[i].is_used && rooms[i].bytes &&
            room_bytes_of_user(rooms, n, rooms[i].uid) > above_bytes &&
            (found == n || rooms[i].used_us <= rooms[found].used_us))
            found = i;
    return found;
}

static bool is_too_small(const struct room_view *room)
{
    return !room->is_used && room->is_final && room->blocks_bytes > room->bytes;
}

/* ---- what grows ---- */

uint64_t room_missing_bytes(const struct room_view *room)
{
    uint64_t size = room_size(room->blocks_bytes);
    return room->is_final || room->is_used || size <= room->bytes ? 0 : size - room->bytes;
}

static uint64_t next_size(const struct room_view *room)
{
    uint64_t size = room_size(room->blocks_bytes);
    return size - room->bytes > ROOM_STEP_BYTES ? room->bytes + ROOM_STEP_BYTES : size;
}

/* The rooms within their user's share, or the others. Sets `ret_lacks` when one finds no space. */
static struct room_step plan_growth(const struct room_view *rooms, size_t n,
    const struct room_limits *limits, bool within_share, bool *ret_lacks)
{
    struct sums sums = add_up(rooms, n);
    uint64_t share = room_share(rooms, n, limits->max_bytes);
    *ret_lacks = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t more = room_missing_bytes(&rooms[i]);
        if (!more || (room_bytes_of_user(rooms, n, rooms[i].uid) + more <= share) != within_share)
            continue;
        uint64_t to = next_size(&rooms[i]);
        bool has_space = sums.all + more <= limits->max_bytes &&
                         sums.idle + more <= limits->idle_max_bytes;
        *ret_lacks |= !has_space;
        if (has_space && (int64_t)(to - rooms[i].bytes) <= limits->spare_bytes)
            return (struct room_step){.kind = ROOM_STEP_GROW, .room = i, .bytes = to};
    }
    return (struct room_step){.kind = ROOM_STEP_NONE};
}

static struct room_step plan_shares(
    const struct room_view *rooms, size_t n, const struct room_limits *limits)
{
    bool lacks;
    struct room_step step = plan_growth(rooms, n, limits, true, &lacks);
    if (step.kind != ROOM_STEP_NONE)
        return step;
    if (!lacks)
        return plan_growth(rooms, n, limits, false, &lacks);
    size_t least = find_least_useful(rooms, n, room_share(rooms, n, limits->max_bytes));
    return least < n ? (struct room_step){.kind = ROOM_STEP_END, .room = least} : step;
}

struct room_step room_plan(
    const struct room_view *rooms, size_t n, const struct room_limits *limits)
{
    struct sums sums = add_up(rooms, n);
    size_t least = find_least_useful(rooms, n, 0);
    bool is_over = sums.idle > limits->idle_max_bytes || sums.all > limits->max_bytes;
    if (least < n && (is_over || limits->spare_bytes < 0))
        return (struct room_step){.kind = ROOM_STEP_END, .room = least};
    for (size_t i = 0; i < n; i++)
        if (is_too_small(&rooms[i]))
            return (struct room_step){.kind = ROOM_STEP_END, .room = i};
    return limits->was_short ? (struct room_step){.kind = ROOM_STEP_NONE}
                             : plan_shares(rooms, n, limits);
}
