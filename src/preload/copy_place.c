/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a copy, and which room it lies in. Copies to and from the host are staged. */
#include "preload/copy_place.h"

#include <unistd.h>

#include "preload/connection.h"

void copy_room_drop(struct copy_room *room)
{
    connection_keep_from_children(-1);
    if (room->place != PRELOAD_PLACE_OWN)
        close(room->fd);
    *room = (struct copy_room){0};
}

void kept_room_drop(struct kept_room *kept)
{
    host_room_drop(&kept->room);
    atomic_store(&kept->is_recalled, 0);
}

/* Returns its size. */
static uint64_t lay_out(struct blocks *blocks)
{
    uint64_t at = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *block = &blocks->item[i];
        block->copy_at = at;
        at += block->is_dead || block->is_kept ? 0 : block->mapped_bytes;
    }
    return at;
}

static enum preload_carry_why open_own(struct copy_place *place)
{
    if (!host_room_make(&place->own, place->bytes))
        return PRELOAD_CARRY_NO_HOST_MEMORY;
    place->host = place->own.host;
    return PRELOAD_CARRY_CAN;
}

static enum preload_carry_why open_pool(
    struct copy_place *place, const struct copy_room *room, struct kept_room *kept)
{
    bool is_new = room->place == PRELOAD_PLACE_POOL;
    if (is_new || atomic_load(&kept->is_recalled))
        kept_room_drop(kept);
    if (is_new && !host_room_map(&kept->room, room->fd, room->offset, room->bytes))
        return PRELOAD_CARRY_NO_HOST_MEMORY;
    if (kept->room.bytes < place->bytes)
        return PRELOAD_CARRY_NO_ROOM;
    place->host = kept->room.host;
    return PRELOAD_CARRY_CAN;
}

static enum preload_carry_why open_neighbour(
    struct copy_place *place, const struct copy_room *room, CUdevice device, int *ret_error)
{
    if (room->place != place->kind || room->bytes < place->bytes)
        return PRELOAD_CARRY_NO_ROOM;
    *ret_error = neighbour_room_open(&place->near, room->fd, room->bytes, device);
    return *ret_error == CUDA_SUCCESS ? PRELOAD_CARRY_CAN : PRELOAD_CARRY_DRIVER;
}

static enum preload_carry_why open_kind(struct copy_place *place, const struct copy_room *room,
    struct kept_room *kept, CUdevice device, int *ret_error)
{
    if (place->kind == PRELOAD_PLACE_OWN)
        return open_own(place);
    if (place->kind == PRELOAD_PLACE_POOL)
        return open_pool(place, room, kept);
    return open_neighbour(place, room, device, ret_error);
}

enum preload_carry_why copy_place_open(struct copy_place *place, enum preload_place kind,
    const struct copy_room *room, struct kept_room *kept, CUdevice device, struct blocks *blocks,
    int *ret_error)
{
    *place = (struct copy_place){.kind = kind, .bytes = lay_out(blocks)};
    enum preload_carry_why why = open_kind(place, room, kept, device, ret_error);
    if (why != PRELOAD_CARRY_CAN)
        copy_place_close(place);
    return why;
}

static CUresult copy_neighbour(const struct copy_place *place, struct staging *staging,
    const struct blocks *blocks, bool is_back)
{
    return neighbour_room_copy(&place->near, staging->lanes[0].streams[0], blocks, is_back);
}

CUresult copy_place_store(
    struct copy_place *place, struct staging *staging, const struct blocks *blocks)
{
    return place->host ? staging_copy(staging, blocks, place->host, STAGING_TO_HOST)
                       : copy_neighbour(place, staging, blocks, false);
}

CUresult copy_place_load(
    struct copy_place *place, struct staging *staging, const struct blocks *blocks)
{
    return place->host ? staging_copy(staging, blocks, place->host, STAGING_TO_GPU)
                       : copy_neighbour(place, staging, blocks, true);
}

/* The whole copy as one block: its form stays. */
CUresult copy_place_move(
    const struct copy_place *from, struct copy_place *to, struct staging *staging)
{
    struct block all = {.at = from->near.at, .mapped_bytes = from->bytes};
    const struct blocks blocks = {.item = &all, .count = 1};
    return staging_copy(staging, &blocks, to->host, STAGING_TO_HOST);
}

void copy_place_close(struct copy_place *place)
{
    host_room_drop(&place->own);
    neighbour_room_close(&place->near);
    *place = (struct copy_place){0};
}
