/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's calls for that: import, reserve, map, allow; and back. */
#include "preload/neighbour_room.h"

#include "preload/hook_table.h"

typedef CUresult import_handle(
    CUmemGenericAllocationHandle *handle, void *shareable, int handle_type);
typedef CUresult reserve(
    CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags);
typedef CUresult free_range(CUdeviceptr at, size_t bytes);
typedef CUresult set_access(
    CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count);
typedef CUresult copy_between(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);

static CUresult import_room(struct neighbour_room *room, int fd)
{
    DRIVER(import_handle, "cuMemImportFromShareableHandle");
    return call
               ? call(&room->handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
               : CUDA_ERROR_NOT_FOUND;
}

static CUresult reserve_range(struct neighbour_room *room)
{
    DRIVER(reserve, "cuMemAddressReserve");
    return call ? call(&room->at, room->bytes, 0, 0, 0) : CUDA_ERROR_NOT_FOUND;
}

static CUresult allow_device(const struct neighbour_room *room, CUdevice device)
{
    DRIVER(set_access, "cuMemSetAccess");
    const CUmemAccessDesc access = {
        {CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return call ? call(room->at, room->bytes, &access, 1) : CUDA_ERROR_NOT_FOUND;
}

CUresult neighbour_room_open(struct neighbour_room *room, int fd, size_t bytes, CUdevice device)
{
    *room = (struct neighbour_room){.bytes = bytes};
    CUresult r = import_room(room, fd);
    if (r == CUDA_SUCCESS)
        r = reserve_range(room);
    if (r == CUDA_SUCCESS)
        r = HOOK_INSIDE(cuMemMap)(room->at, room->bytes, 0, room->handle, 0);
    if (r == CUDA_SUCCESS)
        r = allow_device(room, device);
    return r;
}

static CUresult copy_on_gpus(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    DRIVER(copy_between, "cuMemcpyDtoDAsync_v2");
    return call ? call(to, from, bytes, stream) : CUDA_ERROR_NOT_FOUND;
}

/* All copies are begun, then awaited: a failed one is seen either way. */
CUresult neighbour_room_copy(
    const struct neighbour_room *room, CUstream stream, const struct blocks *blocks, bool is_back)
{
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < blocks->count && r == CUDA_SUCCESS; i++) {
        const struct block *block = &blocks->item[i];
        CUdeviceptr copy = room->at + block->copy_at;
        if (block->is_dead || block->is_kept)
            continue;
        r = is_back ? copy_on_gpus(block->at, copy, block->mapped_bytes, stream)
                    : copy_on_gpus(copy, block->at, block->mapped_bytes, stream);
    }
    CUresult waited = HOOK_INSIDE(cuStreamSynchronize)(stream);
    return r == CUDA_SUCCESS ? waited : r;
}

void neighbour_room_close(struct neighbour_room *room)
{
    DRIVER(free_range, "cuMemAddressFree");
    if (room->at && room->handle)
        HOOK_INSIDE(cuMemUnmap)(room->at, room->bytes);
    if (room->at && call)
        call(room->at, room->bytes);
    if (room->handle)
        HOOK_INSIDE(cuMemRelease)(room->handle);
    *room = (struct neighbour_room){0};
}
