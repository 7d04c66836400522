/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated libcuda's virtual memory management, as the carrier of the preloaded library needs
 * it: ranges of addresses are ranges of the process, and what is mapped there is the host's memory
 * of a handle. So what is not copied is lost, and an access without memory is a crash. Memory of
 * the GPU is taken and given back by cuMemCreate and cuMemRelease (cuda_memory.c).
 *
 * Copies take the host's own time, or that of a bus of $COLLOC_EMULATOR_PCIE and
 * $COLLOC_EMULATOR_NVLINK MiB a second. Several threads may call these functions.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/cuda_interface.h"
#include "emulator/memory.h"

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    enum { MAPS_MEMORY = 102, SHARES_BY_DESCRIPTOR = 103 };

    *value = attribute == MAPS_MEMORY || attribute == SHARES_BY_DESCRIPTOR;
    return CUDA_OK;
}

CUresult cuMemGetAllocationGranularity(
    size_t *granularity, const CUmemAllocationProp *prop, int option)
{
    *granularity = MEMORY_GRAIN;
    return CUDA_OK;
}

/* `memory`: of a handle; -1: none. It cannot be used before cuMemSetAccess. */
static CUresult replace_range(CUdeviceptr at, size_t bytes, int memory)
{
    int flags = memory >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *room = mmap((void *)at, bytes, PROT_NONE, flags | MAP_NORESERVE | MAP_FIXED, memory, 0);

    return room == MAP_FAILED ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

/* One call in this program fails, whose name $COLLOC_EMULATOR_FAILS has, as long as it is set. */
static bool call_fails(const char *call)
{
    const char *name = getenv("COLLOC_EMULATOR_FAILS");

    return name && strcmp(name, call) == 0;
}

CUresult cuMemAddressReserve(
    CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags)
{
    void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    *at = (CUdeviceptr)room;
    return room == MAP_FAILED ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    return munmap((void *)at, bytes) == 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags)
{
    const struct cuda_block *block = cuda_block_at((void *)handle);

    if (!block || (block->foreign_bytes && (int64_t)bytes > block->foreign_bytes))
        return CUDA_INVALID_VALUE;
    if (call_fails("cuMemMap"))
        return CUDA_OUT_OF_MEMORY;
    return replace_range(at, bytes, block->memory);
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const void *access, size_t count)
{
    return mprotect((void *)at, bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    return replace_range(at, bytes, -1);
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *memory ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *memory)
{
    free(memory);
    return CUDA_OK;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    static char any;

    *stream = (CUstream)&any;
    return CUDA_OK;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    return CUDA_OK;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return CUDA_OK;
}

/* ---- copies ---- */

struct bus {
    const char *variable;       /* has its speed; not set: copies do not wait for it */
    _Atomic int64_t free_at_us; /* all copies that were begun have passed it then */
};

static struct bus pcie = {.variable = "COLLOC_EMULATOR_PCIE"},
                  nvlink = {.variable = "COLLOC_EMULATOR_NVLINK"};

static void pass_bus(struct bus *bus, size_t bytes)
{
    const char *text = getenv(bus->variable);
    double mib_per_s = text ? atof(text) : 0;

    if (mib_per_s <= 0)
        return;
    int64_t takes_us = (int64_t)((double)bytes / MIB / mib_per_s * SECOND_US);
    int64_t now_us = clock_monotonic_us(), before_us = atomic_load(&bus->free_at_us), until_us;
    do
        until_us = (before_us > now_us ? before_us : now_us) + takes_us;
    while (!atomic_compare_exchange_weak(&bus->free_at_us, &before_us, until_us));
    struct timespec rest = {.tv_sec = (until_us - now_us) / SECOND_US,
        .tv_nsec = (until_us - now_us) % SECOND_US * 1000};
    nanosleep(&rest, NULL);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    memcpy(to, (const void *)from, bytes);
    pass_bus(&pcie, bytes);
    return call_fails("cuMemcpyDtoHAsync_v2") ? CUDA_LAUNCH_FAILED : CUDA_OK;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    memcpy((void *)to, from, bytes);
    pass_bus(&pcie, bytes);
    return call_fails("cuMemcpyHtoDAsync_v2") ? CUDA_LAUNCH_FAILED : CUDA_OK;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    memcpy((void *)to, (const void *)from, bytes);
    pass_bus(&nvlink, bytes);
    return call_fails("cuMemcpyDtoDAsync_v2") ? CUDA_LAUNCH_FAILED : CUDA_OK;
}
