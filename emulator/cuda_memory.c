/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a process that uses the emulated libcuda. The process joins the emulated machine
 * (world_join) with its first context or memory handle, and leaves it with the last. One thread of
 * the process may use CUDA. The contents of the memory are in the host's memory, page by page as
 * they are written: a device address is one of the host.
 *
 * Calls of a locked or suspended process wait, as NVIDIA's do.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/units.h"
#include "emulator/cuda_interface.h"
#include "emulator/memory.h"

enum { BLOCKS_MAX = 64 };

/* Chosen: less than a real context takes, so that a probe fits beside any training. */
static const int64_t CONTEXT_BYTES = 32 * MIB;

struct CUctx_st {
    CUdevice device;
    bool is_retained;
};

static struct CUctx_st contexts[SEATS_MAX];
static CUcontext current;
static struct process *self;
static struct block {
    void *at; /* NULL: unused */
    int64_t bytes;
    size_t host_bytes;
    CUdevice device;
} blocks[BLOCKS_MAX];

/* Enters the world once this process may call CUDA. */
static struct world *enter_when_running(void)
{
    struct world *world = cuda_world();

    if (!world)
        return NULL;
    world_enter(world);
    while (self && self->cuda_state != CUDA_RUNNING) {
        world_leave(world);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        world_enter(world);
    }
    return world;
}

/* Makes the process's entry, with a seat for each of its devices. */
static bool join_world(struct world *world)
{
    struct seat seats[SEATS_MAX];
    int count = 0;

    while (!self && cuda_seat(count).gpu >= 0) {
        seats[count] = cuda_seat(count);
        count++;
    }
    if (!self)
        self = world_join(world, ROLE_TRAINING, seats, count);
    if (self)
        self->mps_server = cuda_mps_server();
    return self != NULL;
}

/* After a move the same device is another GPU: an entry's seats are in the order of its devices. */
static struct seat seat_of(CUdevice device)
{
    return self->seats[device];
}

/* A process that holds neither a context nor memory is no longer on the GPU, as nvidia-smi shows
 * it. */
static void part_if_unused(struct world *world)
{
    bool used = false;

    for (int i = 0; i < SEATS_MAX; i++)
        used |= contexts[i].is_retained;
    for (int i = 0; i < BLOCKS_MAX; i++)
        used |= blocks[i].at != NULL;
    if (!used && self) {
        world_part(world, self);
        self = NULL;
    }
}

/* Segments of one size on one unit are alike, so the first is as good as the right one. */
static void give_back(int64_t bytes, struct seat seat)
{
    int64_t size = (bytes + MEMORY_GRAIN - 1) / MEMORY_GRAIN * MEMORY_GRAIN;

    for (int i = 0; i < self->segment_count; i++) {
        const struct segment *s = &self->segments[i];
        if (s->size == size && s->seat.gpu == seat.gpu && s->seat.unit == seat.unit) {
            self->segments[i] = self->segments[--self->segment_count];
            return;
        }
    }
}

static CUresult take_memory(struct world *world, int64_t bytes, CUdevice device)
{
    if (!join_world(world) || memory_take(world, self, seat_of(device), bytes) < 0) {
        part_if_unused(world);
        return CUDA_OUT_OF_MEMORY;
    }
    return CUDA_OK;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (cuda_world() && cuda_seat(device).gpu < 0)
        return CUDA_INVALID_DEVICE;
    struct world *world = enter_when_running();
    if (!world)
        return CUDA_NOT_INITIALIZED;
    CUresult r = contexts[device].is_retained ? CUDA_OK : take_memory(world, CONTEXT_BYTES, device);
    if (r == CUDA_OK) {
        contexts[device] = (struct CUctx_st){device, true};
        *context = &contexts[device];
    }
    world_leave(world);
    return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    struct world *world = enter_when_running();

    if (!world)
        return CUDA_NOT_INITIALIZED;
    if (cuda_seat(device).gpu >= 0 && contexts[device].is_retained) {
        give_back(CONTEXT_BYTES, seat_of(device));
        contexts[device].is_retained = false;
        if (current == &contexts[device])
            current = NULL;
        part_if_unused(world);
    }
    world_leave(world);
    return CUDA_OK;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_OK;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return CUDA_OK;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    if (!current)
        return CUDA_INVALID_CONTEXT;
    *device = current->device;
    return CUDA_OK;
}

/* Of a library whose work is on the GPU as well (nccl_library.c). */
static void (*wait_for_work)(void);

void cuStreamPretendWork(void (*wait)(void))
{
    wait_for_work = wait;
}

/* cuCtxSynchronize does not wait as other calls do: in a locked process it returns at once, and a
 * suspended one crashes in it. NVIDIA's driver behaves so; the gate of libcolloc-preload protects
 * tasks from it. */
CUresult cuCtxSynchronize(void)
{
    struct world *world = cuda_world();

    if (!world || !current)
        return CUDA_INVALID_CONTEXT;
    world_enter(world);
    bool is_off = self && self->cuda_state == CUDA_CHECKPOINTED;
    world_leave(world);
    if (is_off)
        raise(SIGSEGV);
    if (wait_for_work)
        wait_for_work();
    return CUDA_OK;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    struct world *world = current ? enter_when_running() : NULL;

    if (!world)
        return CUDA_INVALID_CONTEXT;
    *free_bytes = (size_t)memory_free(world, seat_of(current->device));
    *total_bytes = (size_t)world_unit(world, seat_of(current->device))->total_bytes;
    world_leave(world);
    return CUDA_OK;
}

/* Address space of the host; memory comes with what is written. Returns NULL: there is none. */
static void *map_host(size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* Memory of the GPU, and `host_bytes` of the host's for what lies in it. */
static CUresult take_block(
    CUdevice device, size_t bytes, size_t host_bytes, struct block **ret_block)
{
    struct block *block = blocks;

    while (block < blocks + BLOCKS_MAX && block->at)
        block++;
    void *at = block < blocks + BLOCKS_MAX ? map_host(host_bytes) : NULL;
    struct world *world = at ? enter_when_running() : NULL;
    CUresult r = world ? take_memory(world, (int64_t)bytes, device) : CUDA_OUT_OF_MEMORY;
    if (r == CUDA_OK) {
        *block = (struct block){at, (int64_t)bytes, host_bytes, device};
        *ret_block = block;
    } else if (at) {
        munmap(at, host_bytes);
    }
    if (world)
        world_leave(world);
    return r;
}

/* Waits while the process is suspended, as every CUDA call does then. */
static CUresult free_block(void *at)
{
    for (int i = 0; at && i < BLOCKS_MAX; i++) {
        if (blocks[i].at != at)
            continue;
        struct world *world = enter_when_running();
        give_back(blocks[i].bytes, seat_of(blocks[i].device));
        blocks[i].at = NULL;
        part_if_unused(world);
        world_leave(world);
        munmap(at, blocks[i].host_bytes);
        return CUDA_OK;
    }
    return CUDA_INVALID_VALUE;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    struct block *block;

    if (!current)
        return CUDA_INVALID_CONTEXT;
    CUresult r = take_block(current->device, bytes, bytes, &block);
    if (r == CUDA_OK)
        *at = (CUdeviceptr)block->at;
    return r;
}

/* As the driver: a process with managed memory cannot be suspended. */
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
    CUresult r = cuMemAlloc_v2(at, bytes);

    if (r == CUDA_OK)
        self->has_managed = true;
    return r;
}

/* The handle is the address: no other process can open it. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    if (!current)
        return CUDA_INVALID_CONTEXT;
    *handle = (CUipcMemHandle){{0}};
    memcpy(handle->reserved, &at, sizeof(at));
    return CUDA_OK;
}

CUresult cuMemFree_v2(CUdeviceptr at)
{
    return free_block((void *)at);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    struct world *world = current ? enter_when_running() : NULL;

    if (!world)
        return CUDA_INVALID_CONTEXT;
    memcpy((void *)to, from, bytes);
    world_leave(world);
    return CUDA_OK;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    struct world *world = current ? enter_when_running() : NULL;

    if (!world)
        return CUDA_INVALID_CONTEXT;
    memcpy(to, (const void *)from, bytes);
    world_leave(world);
    return CUDA_OK;
}

/* Memory that is not mapped: it needs no context, and nothing can lie in it. */
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
    const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct block *block;

    if (!cuda_world())
        return CUDA_NOT_INITIALIZED;
    if (!prop || prop->type != 1 || prop->location.type != 1 || bytes % MEMORY_GRAIN)
        return CUDA_INVALID_VALUE;
    if (cuda_seat(prop->location.id).gpu < 0)
        return CUDA_INVALID_DEVICE;
    CUresult r = take_block(prop->location.id, bytes, 1, &block);
    if (r == CUDA_OK)
        *handle = (CUmemGenericAllocationHandle)block->at;
    return r;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return free_block((void *)handle);
}
