/* SPDX-License-Identifier: Apache-2.0 */
/* The places, each by the calls that its memory needs. Only copies to and from the host are staged:
 * between GPUs the copy engines do all of it. */
#include "preload/copy_place.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/connection.h"
#include "preload/hook_table.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

void copy_room_drop(struct copy_room *room)
{
    connection_keep_from_children(-1);
    if (room->place != PRELOAD_PLACE_OWN)
        close(room->fd);
    *room = (struct copy_room){0};
}

/* ---- the form of a copy ---- */

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

/* ---- the process's own host memory ---- */

/* In whole huge pages where the kernel has them: touching is then three times as fast. */
static enum preload_carry_why open_own(struct copy_place *place)
{
    size_t bytes = place->bytes + HUGE_PAGE_BYTES;
    char *room = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return PRELOAD_CARRY_NO_HOST_MEMORY;
    madvise(room, bytes, MADV_HUGEPAGE);
    madvise(room, bytes, MADV_DONTFORK);
    madvise(room, bytes, MADV_DONTDUMP);
    place->room = room;
    place->room_bytes = bytes;
    place->host = room + -(uintptr_t)room % HUGE_PAGE_BYTES;
    return PRELOAD_CARRY_CAN;
}

/* ---- host memory of the daemon's ---- */

void kept_room_drop(struct kept_room *kept)
{
    if (kept->mapping)
        munmap(kept->mapping, kept->mapping_bytes);
    kept->mapping = NULL;
    kept->host = NULL;
    kept->bytes = 0;
    atomic_store(&kept->is_recalled, 0);
}

/* At a multiple of a huge page, as in the file: only then can the page tables have huge ones. */
static bool map_room(struct kept_room *kept, const struct copy_room *room)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t bytes = room->bytes + HUGE_PAGE_BYTES;
    char *range = mmap(NULL, bytes, PROT_NONE, how, -1, 0);
    if (range == MAP_FAILED)
        return false;
    char *host = range + -(uintptr_t)range % HUGE_PAGE_BYTES;
    if (mmap(host, room->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, room->fd,
            (off_t)room->offset) == MAP_FAILED) {
        munmap(range, bytes);
        return false;
    }
    madvise(host, room->bytes, MADV_HUGEPAGE);
    madvise(host, room->bytes, MADV_DONTFORK);
    madvise(host, room->bytes, MADV_DONTDUMP);
    kept->mapping = range;
    kept->mapping_bytes = bytes;
    kept->host = host;
    kept->bytes = room->bytes;
    return true;
}

static enum preload_carry_why open_pool(
    struct copy_place *place, const struct copy_room *room, struct kept_room *kept)
{
    bool is_new = room->place == PRELOAD_PLACE_POOL;
    if (is_new || atomic_load(&kept->is_recalled))
        kept_room_drop(kept);
    if (is_new && !map_room(kept, room))
        return PRELOAD_CARRY_NO_HOST_MEMORY;
    if (kept->bytes < place->bytes)
        return PRELOAD_CARRY_NO_ROOM;
    place->host = kept->host;
    return PRELOAD_CARRY_CAN;
}

/* ---- the memory of another GPU ---- */

typedef CUresult import_handle(
    CUmemGenericAllocationHandle *handle, void *shareable, int handle_type);
typedef CUresult reserve(
    CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags);
typedef CUresult free_range(CUdeviceptr at, size_t bytes);
typedef CUresult set_access(
    CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count);
typedef CUresult copy_between(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);

static void close_neighbour(struct copy_place *place)
{
    DRIVER(free_range, "cuMemAddressFree");
    if (place->at && place->handle)
        HOOK_INSIDE(cuMemUnmap)(place->at, place->room_bytes);
    if (place->at && call)
        call(place->at, place->room_bytes);
    if (place->handle)
        HOOK_INSIDE(cuMemRelease)(place->handle);
}

static CUresult import_room(struct copy_place *place, int fd)
{
    DRIVER(import_handle, "cuMemImportFromShareableHandle");
    return call ? call(&place->handle, (void *)(intptr_t)fd,
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                : CUDA_ERROR_NOT_FOUND;
}

static CUresult reserve_range(struct copy_place *place)
{
    DRIVER(reserve, "cuMemAddressReserve");
    return call ? call(&place->at, place->room_bytes, 0, 0, 0) : CUDA_ERROR_NOT_FOUND;
}

static CUresult allow_device(const struct copy_place *place, CUdevice device)
{
    DRIVER(set_access, "cuMemSetAccess");
    const CUmemAccessDesc access = {
        {CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return call ? call(place->at, place->room_bytes, &access, 1) : CUDA_ERROR_NOT_FOUND;
}

static enum preload_carry_why open_neighbour(
    struct copy_place *place, const struct copy_room *room, CUdevice device, int *ret_error)
{
    place->room_bytes = room->bytes;
    CUresult r = import_room(place, room->fd);
    if (r == CUDA_SUCCESS)
        r = reserve_range(place);
    if (r == CUDA_SUCCESS)
        r = HOOK_INSIDE(cuMemMap)(place->at, place->room_bytes, 0, place->handle, 0);
    if (r == CUDA_SUCCESS)
        r = allow_device(place, device);
    *ret_error = r;
    return r == CUDA_SUCCESS ? PRELOAD_CARRY_CAN : PRELOAD_CARRY_DRIVER;
}

static CUresult copy_on_gpus(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    DRIVER(copy_between, "cuMemcpyDtoDAsync_v2");
    return call ? call(to, from, bytes, stream) : CUDA_ERROR_NOT_FOUND;
}

/* All copies are begun, then awaited: a failed one is seen either way. */
static CUresult copy_neighbour(const struct copy_place *place, struct staging *staging,
    const struct blocks *blocks, bool is_back)
{
    CUstream stream = staging->lanes[0].streams[0];
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < blocks->count && r == CUDA_SUCCESS; i++) {
        const struct block *block = &blocks->item[i];
        CUdeviceptr copy = place->at + block->copy_at;
        if (block->is_dead || block->is_kept)
            continue;
        r = is_back ? copy_on_gpus(block->at, copy, block->mapped_bytes, stream)
                    : copy_on_gpus(copy, block->at, block->mapped_bytes, stream);
    }
    CUresult waited = HOOK_INSIDE(cuStreamSynchronize)(stream);
    return r == CUDA_SUCCESS ? waited : r;
}

/* ---- any place ---- */

static enum preload_carry_why open_kind(struct copy_place *place, const struct copy_room *room,
    struct kept_room *kept, CUdevice device, int *ret_error)
{
    if (place->kind == PRELOAD_PLACE_OWN)
        return open_own(place);
    if (place->kind == PRELOAD_PLACE_POOL)
        return open_pool(place, room, kept);
    if (room->place != place->kind || room->bytes < place->bytes)
        return PRELOAD_CARRY_NO_ROOM;
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
    struct block all = {.at = from->at, .mapped_bytes = from->bytes};
    const struct blocks blocks = {.item = &all, .count = 1};
    return staging_copy(staging, &blocks, to->host, STAGING_TO_HOST);
}

void copy_place_close(struct copy_place *place)
{
    if (place->room)
        munmap(place->room, place->room_bytes);
    close_neighbour(place);
    *place = (struct copy_place){0};
}
