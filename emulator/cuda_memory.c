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
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "emulator/cuda_interface.h"
#include "emulator/memory.h"

/* Chosen: less than a real context takes, so that a probe fits beside any training. */
static const int64_t CONTEXT_BYTES = 32 * MIB;

/* Of these, the stacks of all threads at the usual limit. An H200 has 264 of 518 MiB. */
static const int64_t STACKS_BYTES = 16 * MIB;
static const size_t STACK_USUAL_BYTES = 1024;

struct CUctx_st {
    CUdevice device;
    bool is_retained;
    int64_t bytes;
};

static struct CUctx_st contexts[SEATS_MAX];
static CUcontext current;
static struct process *self;
static struct cuda_block blocks[CUDA_BLOCKS_MAX];

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
    for (int i = 0; i < CUDA_BLOCKS_MAX; i++)
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
        contexts[device] = (struct CUctx_st){
            device, true, contexts[device].is_retained ? contexts[device].bytes : CONTEXT_BYTES};
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
        give_back(contexts[device].bytes, seat_of(device));
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

/* A smaller limit of the stack releases all stacks: a program that sets it runs no kernel. */
CUresult cuCtxSetLimit(int limit, size_t size)
{
    if (!current)
        return CUDA_INVALID_CONTEXT;
    bool releases = limit == CUDA_LIMIT_STACK && size < STACK_USUAL_BYTES;
    struct world *world = releases && current->bytes == CONTEXT_BYTES ? enter_when_running() : NULL;
    if (!world)
        return CUDA_OK;
    give_back(current->bytes, seat_of(current->device));
    current->bytes -= STACKS_BYTES;
    CUresult r = take_memory(world, current->bytes, current->device);
    world_leave(world);
    return r;
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

/* Puts host memory behind a block. Its pages come with what is written. `host_bytes`: how much of
 * it has an address. */
static bool map_host(struct cuda_block *block, CUdevice device, size_t bytes, size_t host_bytes)
{
    char name[64];
    struct seat seat = cuda_seat(device);

    snprintf(name, sizeof(name), CUDA_MEMORY_NAME, seat.gpu, seat.unit);
    int memory = memfd_create(name, MFD_CLOEXEC);
    void *at = MAP_FAILED;

    if (memory >= 0 && ftruncate(memory, (off_t)bytes) == 0)
        at = mmap(NULL, host_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
    if (at == MAP_FAILED && memory >= 0)
        close(memory);
    *block = (struct cuda_block){
        .at = at == MAP_FAILED ? NULL : at, .host_bytes = host_bytes, .memory = memory};
    return block->at;
}

static void unmap_host(struct cuda_block *block)
{
    munmap(block->at, block->host_bytes);
    close(block->memory);
    block->at = NULL;
}

static struct cuda_block *unused_block(void)
{
    for (int i = 0; i < CUDA_BLOCKS_MAX; i++)
        if (!blocks[i].at)
            return &blocks[i];
    return NULL;
}

/* Memory of the GPU, and `host_bytes` of the host's for what lies in it. */
static CUresult take_block(
    CUdevice device, size_t bytes, size_t host_bytes, struct cuda_block **ret_block)
{
    struct cuda_block *block = unused_block(), fresh;
    bool has_memory = block && map_host(&fresh, device, bytes, host_bytes);
    struct world *world = has_memory ? enter_when_running() : NULL;
    CUresult r = world ? take_memory(world, (int64_t)bytes, device) : CUDA_OUT_OF_MEMORY;

    if (r == CUDA_OK) {
        fresh.bytes = (int64_t)bytes;
        fresh.device = device;
        *block = fresh;
        *ret_block = block;
    } else if (has_memory) {
        unmap_host(&fresh);
    }
    if (world)
        world_leave(world);
    return r;
}

/* Waits while the process is suspended, as every CUDA call does then. */
static CUresult free_block(void *at)
{
    struct cuda_block *block = cuda_block_at(at);
    struct world *world = block ? enter_when_running() : NULL;

    if (!world)
        return CUDA_INVALID_VALUE;
    give_back(block->bytes, block->is_lent ? block->lent : seat_of(block->device));
    unmap_host(block);
    part_if_unused(world);
    world_leave(world);
    return CUDA_OK;
}

struct cuda_block *cuda_block_at(const void *at)
{
    for (int i = 0; at && i < CUDA_BLOCKS_MAX; i++)
        if (blocks[i].at == at)
            return &blocks[i];
    return NULL;
}

struct cuda_block *cuda_block_of_memory(int memory, size_t bytes, size_t host_bytes)
{
    struct cuda_block *block = self ? unused_block() : NULL;
    void *at = block ? mmap(NULL, host_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0)
                     : MAP_FAILED;

    if (at == MAP_FAILED)
        return NULL;
    *block = (struct cuda_block){
        .at = at, .host_bytes = host_bytes, .memory = memory, .foreign_bytes = (int64_t)bytes};
    return block;
}

bool cuda_block_take_lent(struct cuda_block *block, struct seat seat)
{
    struct world *world = enter_when_running();
    bool is_taken = world && join_world(world) &&
                    memory_take(world, self, seat, block->foreign_bytes) == 0;

    if (is_taken) {
        block->bytes = block->foreign_bytes;
        block->lent = seat;
        block->is_lent = true;
    }
    if (world)
        world_leave(world);
    return is_taken;
}

CUcontext cuda_current_context(void)
{
    return current;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    struct cuda_block *block;

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

CUresult cuMemFree_v2(CUdeviceptr at)
{
    const struct cuda_block *block = cuda_block_at((void *)at);

    return block && !block->is_handle && !block->foreign_bytes ? free_block((void *)at)
                                                               : CUDA_INVALID_VALUE;
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
    struct cuda_block *block;

    if (!cuda_world())
        return CUDA_NOT_INITIALIZED;
    if (!prop || prop->type != 1 || prop->location.type != 1 || bytes % MEMORY_GRAIN)
        return CUDA_INVALID_VALUE;
    if (cuda_seat(prop->location.id).gpu < 0)
        return CUDA_INVALID_DEVICE;
    CUresult r = take_block(prop->location.id, bytes, 1, &block);
    if (r == CUDA_OK) {
        block->is_handle = true;
        block->is_exportable = prop->requestedHandleTypes;
        *handle = (CUmemGenericAllocationHandle)block->at;
    }
    return r;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return free_block((void *)handle);
}
