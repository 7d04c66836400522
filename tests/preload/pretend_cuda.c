/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 for the tests of libcolloc-preload.so: one GPU whose memory processes share
 * through a file ($PRETEND_CUDA), and every way to take memory of it that the library stands
 * before. What a call must never do (synchronising while the file says "suspended") ends the
 * program by SIGSEGV, as NVIDIA's driver does.
 *
 * Unlike the emulator's libcuda it may be used by many threads, and keeps old and future forms of a
 * function, memory pools, mappings and captures.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/driver_abi.h"
#include "tests/preload/pretend_cuda.h"

#define EXPORT __attribute__((visibility("default")))

typedef void any_function(void);

enum {
    ERROR_INVALID_VALUE = 1,
    ERROR_INVALID_CONTEXT = 201,
    ERROR_ILLEGAL_STATE = 401,
    ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    BLOCKS_MAX = 1 << 14,
    CAPTURES_MAX = 8
};

static struct pretend_gpu *gpu;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_address = UINT64_C(0x7f0000000000), free_address; /* the last; 0: none */
static uintptr_t n_contexts;
static int n_primary;     /* references of the primary context */
static CUcontext current; /* of all threads; NULL: the primary one */
static struct block {
    uint64_t at, bytes;
    int references; /* of physical memory; a block has one */
    uint64_t mapped_at;
    CUcontext context;
    bool is_exportable;
    int memory; /* a memfd with its content, once another process may have it; 0: none */
} blocks[BLOCKS_MAX];
static uint64_t pool_reserved, pool_high, pool_used;
static struct capture {
    CUstream stream;
    pthread_t thread; /* that may end it */
    uint64_t number;
} captures[CAPTURES_MAX];
static uint64_t captures_begun;

static int take(uint64_t bytes)
{
    atomic_fetch_add(&gpu->tries, 1);
    if (atomic_fetch_add(&gpu->used_bytes, bytes) + bytes <= atomic_load(&gpu->total_bytes))
        return CUDA_SUCCESS;
    atomic_fetch_sub(&gpu->used_bytes, bytes);
    atomic_fetch_add(&gpu->refusals, 1);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void give_back(uint64_t bytes)
{
    atomic_fetch_sub(&gpu->used_bytes, bytes);
}

/* Under the lock. It begins at the last one that was found: programs mostly go on from there. */
static struct block *find_block(uint64_t at)
{
    static int last;
    for (int i = 0; i < BLOCKS_MAX; i++) {
        int k = (last + i) % BLOCKS_MAX;
        if (blocks[k].at != at)
            continue;
        last = k;
        return &blocks[k];
    }
    return NULL;
}

/* To the last byte. */
static bool is_full(void)
{
    return gpu && atomic_load(&gpu->used_bytes) >= atomic_load(&gpu->total_bytes);
}

static CUresult take_block(uint64_t *ret_at, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    struct block *block = find_block(0);
    CUresult r = !gpu ? ERROR_INVALID_CONTEXT : !block ? CUDA_ERROR_OUT_OF_MEMORY : take(bytes);
    if (r == CUDA_SUCCESS) {
        *block = (struct block){.at = free_address ? free_address : next_address,
            .bytes = bytes,
            .references = 1,
            .context = current};
        if (!free_address)
            next_address += (bytes + 0x1fffff) / 0x200000 * 0x200000;
        free_address = 0;
        *ret_at = block->at;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

static void wait_while_busy(void)
{
    atomic_fetch_add(&gpu->synchronising, 1);
    while (atomic_load(&gpu->busy))
        usleep(1000);
    atomic_fetch_sub(&gpu->synchronising, 1);
}

static void wait_while_held(enum held_call call)
{
    while (atomic_load(&gpu->held) & call)
        usleep(1000);
}

/* Whether nothing is released now. */
static bool refuses(void)
{
    return getenv("PRETEND_CUDA_REFUSES");
}

/* One reference less. The last address that is free is used again at once. */
static CUresult release_block(uint64_t at)
{
    if (refuses())
        return ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    struct block *block = at ? find_block(at) : NULL;
    if (block && --block->references == 0) {
        give_back(block->bytes);
        if (block->memory)
            close(block->memory);
        *block = (struct block){0};
        free_address = at;
    }
    pthread_mutex_unlock(&lock);
    if (block)
        wait_while_busy();
    return block ? CUDA_SUCCESS : ERROR_INVALID_VALUE;
}

/* ---- devices and contexts ---- */

EXPORT CUresult cuInit(unsigned flags);
CUresult cuInit(unsigned flags)
{
    const char *path = getenv("PRETEND_CUDA");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return 100; /* no device */
    void *map = mmap(NULL, sizeof(*gpu), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return 100;
    gpu = map;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return gpu ? CUDA_SUCCESS : ERROR_INVALID_CONTEXT;
}

/* As many as the variable says: processes with several are not carried. */
EXPORT CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetCount(int *count)
{
    const char *text = getenv("PRETEND_CUDA_GPUS");
    *count = text ? atoi(text) : 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    bool cannot_export = getenv("PRETEND_CUDA_EXPORTS") &&
                         attribute ==
                             CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    *value = !getenv("PRETEND_CUDA_OLD") && !cannot_export;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device)
{
    memcpy(uuid, gpu->uuid, 16);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)gpu;
    CUresult r = gpu ? take(gpu->context_bytes) : 100;
    n_primary += r == CUDA_SUCCESS;
    return r;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = n_primary > 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    if (refuses())
        return ERROR_INVALID_CONTEXT;
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (blocks[i].at && !blocks[i].context)
            release_block(blocks[i].at);
    memset(captures, 0, sizeof(captures));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    if (refuses())
        return ERROR_INVALID_CONTEXT;
    n_primary -= n_primary > 0;
    return n_primary ? CUDA_SUCCESS : cuDevicePrimaryCtxReset_v2(device);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    CUresult r = gpu ? take(gpu->context_bytes) : 100;
    if (r == CUDA_SUCCESS)
        *context = current = (CUcontext)(++n_contexts << 12);
    return r;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current ? current : (CUcontext)gpu;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxDestroy_v2(CUcontext context)
{
    if (refuses())
        return ERROR_INVALID_CONTEXT;
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (blocks[i].at && blocks[i].context == context)
            release_block(blocks[i].at);
    memset(captures, 0, sizeof(captures));
    return CUDA_SUCCESS;
}

/* ---- blocks ---- */

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    return take_block(at, bytes);
}

/* As before CUDA 3.2: addresses have 32 bits. */
EXPORT CUresult cuMemAlloc(uint32_t *at, unsigned bytes);
CUresult cuMemAlloc(uint32_t *at, unsigned bytes)
{
    *at = 32;
    return CUDA_SUCCESS;
}

/* A form that no library knows yet. */
static CUresult mem_alloc_future(int flags, CUdeviceptr *at, size_t bytes)
{
    *at = 99;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocPitch_v2(
    CUdeviceptr *at, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemAllocPitch_v2(
    CUdeviceptr *at, size_t *pitch, size_t width, size_t height, unsigned element)
{
    *pitch = (width + 511) / 512 * 512;
    return take_block(at, *pitch * height);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags);
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
    *at = 64;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuMemFree_v2(CUdeviceptr at)
{
    return release_block(at);
}

/* ---- physical memory ---- */

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
    const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
    const CUmemAllocationProp *prop, unsigned long long flags)
{
    wait_while_held(HOLD_CREATE);
    CUresult r = take_block(handle, bytes);
    if (r == CUDA_SUCCESS)
        find_block(*handle)->is_exportable = prop->requested_handle_types;
    return r;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return release_block(handle);
}

/* Reserved ranges are addresses of the process. Memory that is mapped there is new and can be read
 * and written; without it the program dies of SIGSEGV, as a kernel would of an illegal address. */
enum { RANGES_MAX = 1 << 14, GRAIN = 2 << 20 };
static struct range {
    uint64_t at, bytes;
    void *room;
} ranges[RANGES_MAX];

EXPORT CUresult cuMemGetAllocationGranularity(
    size_t *granularity, const CUmemAllocationProp *prop, int option);
CUresult cuMemGetAllocationGranularity(
    size_t *granularity, const CUmemAllocationProp *prop, int option)
{
    *granularity = GRAIN;
    return CUDA_SUCCESS;
}

static struct range *find_range(uint64_t at)
{
    static int last;
    for (int i = 0; i < RANGES_MAX; i++) {
        int k = (last + i) % RANGES_MAX;
        if (ranges[k].at != at)
            continue;
        last = k;
        return &ranges[k];
    }
    return NULL;
}

/* One call in this program fails, whose name the variable has; the others do not. */
static bool fails(const char *call)
{
    const char *name = getenv("PRETEND_CUDA_FAILS");
    return name && strcmp(name, call) == 0;
}

EXPORT CUresult cuMemAddressReserve(
    CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags);
CUresult cuMemAddressReserve(
    CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags)
{
    void *room = fails("cuMemAddressReserve")
                     ? MAP_FAILED
                     : mmap(NULL, bytes + GRAIN, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_mutex_lock(&lock);
    struct range *range = room == MAP_FAILED ? NULL : find_range(0);
    if (range) {
        *at = ((uintptr_t)room + GRAIN - 1) / GRAIN * GRAIN;
        *range = (struct range){*at, bytes, room};
    }
    pthread_mutex_unlock(&lock);
    return range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes);
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct range *range = at ? find_range(at) : NULL;
    if (range) {
        munmap(range->room, range->bytes + GRAIN);
        *range = (struct range){0};
    }
    pthread_mutex_unlock(&lock);
    return range ? CUDA_SUCCESS : ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemSetAccess(
    CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    int r = mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE);
    return r == 0 && !fails("cuMemSetAccess") ? CUDA_SUCCESS : ERROR_INVALID_VALUE;
}

/* `memory`: a memfd, or 0 for new memory. */
static void renew_range(uint64_t at, size_t bytes, int memory)
{
    int flags = memory ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (find_range(at))
        (void)mmap(
            (void *)(uintptr_t)at, bytes, PROT_NONE, flags | MAP_FIXED, memory ? memory : -1, 0);
}

EXPORT CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset,
    CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags)
{
    pthread_mutex_lock(&lock);
    struct block *block = find_block(handle);
    if (block) {
        block->references++;
        block->mapped_at = at;
        renew_range(at, bytes, block->memory);
    }
    pthread_mutex_unlock(&lock);
    return block ? CUDA_SUCCESS : ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    wait_while_held(HOLD_UNMAP);
    if (refuses())
        return ERROR_INVALID_CONTEXT;
    for (int i = 0; i < BLOCKS_MAX; i++) {
        if (!blocks[i].at || blocks[i].mapped_at < at || blocks[i].mapped_at - at >= bytes)
            continue;
        blocks[i].mapped_at = 0;
        release_block(blocks[i].at);
    }
    renew_range(at, bytes, 0);
    return CUDA_SUCCESS;
}

/* ---- memory of two processes ---- */

/* Under the lock. Puts the content of a block into a memfd, and that behind its range. */
static int share_content(struct block *block)
{
    if (block->memory)
        return block->memory;
    void *content = (void *)(uintptr_t)block->mapped_at;
    int memory = memfd_create("pretend-cuda", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, (off_t)block->bytes) < 0)
        return -1;
    if (content && pwrite(memory, content, block->bytes, 0) == (ssize_t)block->bytes)
        (void)mmap(
            content, block->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0);
    return block->memory = memory;
}

EXPORT CUresult cuMemExportToShareableHandle(
    void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags);
CUresult cuMemExportToShareableHandle(
    void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)
{
    pthread_mutex_lock(&lock);
    struct block *block = handle ? find_block(handle) : NULL;
    bool may = block && block->is_exportable && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    int memory = may && !fails("cuMemExportToShareableHandle") ? share_content(block) : -1;
    pthread_mutex_unlock(&lock);
    if (memory >= 0)
        *(int *)shareable = fcntl(memory, F_DUPFD_CLOEXEC, 0);
    return memory >= 0 ? CUDA_SUCCESS : ERROR_INVALID_VALUE;
}

/* The memory stays the other process's: it is taken from the GPU once. */
EXPORT CUresult cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *handle, void *shareable, int type);
CUresult cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *handle, void *shareable, int type)
{
    pthread_mutex_lock(&lock);
    struct block *block = fails("cuMemImportFromShareableHandle") ? NULL : find_block(0);
    if (block) {
        int memory = fcntl((int)(intptr_t)shareable, F_DUPFD_CLOEXEC, 0);
        *block = (struct block){.at = next_address, .references = 1, .memory = memory};
        next_address += GRAIN;
        *handle = block->at;
    }
    pthread_mutex_unlock(&lock);
    return block ? CUDA_SUCCESS : ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle);
CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    *prop = (CUmemAllocationProp){.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    return CUDA_SUCCESS;
}

/* The driver's own handles: for memory of cuMemAlloc, not for mapped memory. */
static const char handle_magic[] = "pretend driver";

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    if (!handle || !find_block(at))
        return ERROR_INVALID_VALUE;
    *handle = (CUipcMemHandle){{0}};
    memcpy(handle->bytes, handle_magic, sizeof(handle_magic));
    memcpy(handle->bytes + sizeof(handle_magic), &at, sizeof(at));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    if (memcmp(handle.bytes, handle_magic, sizeof(handle_magic)) != 0)
        return ERROR_INVALID_VALUE;
    memcpy(at, handle.bytes + sizeof(handle_magic), sizeof(*at));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr at);
CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    return find_range(at) ? ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- host memory and copies ---- */

EXPORT CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    *memory = fails("cuMemHostAlloc") ? NULL : aligned_alloc(4096, bytes);
    return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFreeHost(void *memory);
CUresult cuMemFreeHost(void *memory)
{
    free(memory);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    *stream = (CUstream)gpu;
    return is_full() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    *event = (CUevent)gpu;
    return is_full() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    wait_while_held(HOLD_COPY_OUT);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return fails("cuMemcpyDtoHAsync_v2") ? 700 : CUDA_SUCCESS;
}

/* With PRETEND_CUDA_SPARSE a program has content in the first bytes of its blocks only: memory of
 * any size takes some pages of the host. */
enum { SPARSE_BYTES = 64 };

EXPORT CUresult cuMemcpyDtoDAsync_v2(
    CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    wait_while_held(HOLD_COPY_ACROSS);
    if (getenv("PRETEND_CUDA_SPARSE"))
        bytes = SPARSE_BYTES;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return fails("cuMemcpyDtoDAsync_v2") ? 700 : CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(
    CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    wait_while_held(HOLD_COPY_BACK);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return fails("cuMemcpyHtoDAsync_v2") ? 700 : CUDA_SUCCESS;
}

/* Takes as long as the file says, and only then touches the memory. */
EXPORT CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t bytes);
CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t bytes)
{
    wait_while_busy();
    memset((void *)(uintptr_t)at, value, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    (void)from;
    return to && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- graphs: the handle of one is the number of its capture ---- */

/* Of a library whose work is in graphs as well (emulator/nccl_library.c). */
static void (*launch_graph)(uint64_t capture);

EXPORT void cuGraphPretendWork(void (*launch)(uint64_t capture));
void cuGraphPretendWork(void (*launch)(uint64_t capture))
{
    launch_graph = launch;
}

EXPORT CUresult cuGraphInstantiateWithFlags(
    CUgraphExec *executable, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiateWithFlags(
    CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    *executable = (CUgraphExec)(void *)graph;
    if (is_full())
        return CUDA_ERROR_OUT_OF_MEMORY;
    return graph && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphDestroy(CUgraph graph)
{
    return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable);
CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    return executable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    (void)stream;
    if (is_full())
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (executable && launch_graph)
        launch_graph((uint64_t)(uintptr_t)executable);
    return executable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphUpload(CUgraphExec executable, CUstream stream);
CUresult cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    if (is_full())
        return CUDA_ERROR_OUT_OF_MEMORY;
    return executable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

/* As the driver's of mapped memory: of no context, and in the size of the mapping. */
EXPORT CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr at);
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr at)
{
    uint64_t answer = attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ? GRAIN : 0;
    memcpy(value, &answer, sizeof(answer));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttributes(
    unsigned count, int *attributes, void **values, CUdeviceptr at);
CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr at)
{
    for (unsigned i = 0; i < count; i++)
        cuPointerGetAttribute(values[i], attributes[i], at);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
    return ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at)
{
    *handle = 1;
    return CUDA_SUCCESS;
}

/* ---- the pool ---- */

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    uint64_t missing = pool_used + bytes > pool_reserved ? pool_used + bytes - pool_reserved : 0;
    CUresult r = missing ? take(missing) : CUDA_SUCCESS;
    if (r != CUDA_SUCCESS)
        return r;
    pool_reserved += missing;
    pool_used += bytes;
    pool_high = pool_reserved > pool_high ? pool_reserved : pool_high;
    *at = 4096;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *at, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    return cuMemAllocAsync(at, bytes, stream);
}

/* At once, as on a stream without work. */
EXPORT CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    return release_block(at);
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr at, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr at, CUstream stream)
{
    return release_block(at);
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    *pool = (CUmemoryPool)gpu;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    uint64_t number = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool_reserved
                      : attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH  ? pool_high
                                                                        : pool_used;
    memcpy(value, &number, sizeof(number));
    return CUDA_SUCCESS;
}

/* ---- streams ---- */

/* Of a library whose work is on the GPU as well (emulator/nccl_library.c). */
static void (*wait_for_work)(void);

EXPORT void cuStreamPretendWork(void (*wait)(void));
void cuStreamPretendWork(void (*wait)(void))
{
    wait_for_work = wait;
}

static CUresult synchronise(void)
{
    if (atomic_load(&gpu->suspended))
        raise(SIGSEGV);
    wait_while_busy();
    if (wait_for_work)
        wait_for_work();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream)
{
    return synchronise();
}

EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    return synchronise();
}

EXPORT CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize(void)
{
    return synchronise();
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuCtxSynchronize_v2(CUcontext context)
{
    return context ? synchronise() : ERROR_INVALID_CONTEXT;
}

static struct capture *find_capture(CUstream stream)
{
    for (int i = 0; i < CAPTURES_MAX; i++)
        if (captures[i].stream == stream)
            return &captures[i];
    return NULL;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    struct capture *capture = find_capture(NULL);
    if (!capture)
        return ERROR_ILLEGAL_STATE;
    *capture = (struct capture){stream, pthread_self(), ++captures_begun};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    struct capture *capture = find_capture(stream);
    if (!capture)
        return ERROR_ILLEGAL_STATE;
    if (!pthread_equal(capture->thread, pthread_self()))
        return ERROR_STREAM_CAPTURE_WRONG_THREAD;
    capture->stream = NULL;
    if (graph)
        *graph = (CUgraph)(uintptr_t)capture->number;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *number);
CUresult cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *number)
{
    const struct capture *capture = find_capture(stream);
    *status = stream && capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    *number = *status ? capture->number : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    *status = find_capture(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                   : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream)
{
    struct capture *capture = find_capture(stream);
    if (refuses())
        return ERROR_INVALID_CONTEXT;
    if (capture)
        capture->stream = NULL;
    return CUDA_SUCCESS;
}

/* ---- code ---- */

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
    void **jit_values, unsigned jit_count, int *options, void **values, unsigned count);
CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
    void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)
{
    enum { CODE_BYTES = 64 << 20 };
    *library = (CUlibrary)gpu;
    return take(CODE_BYTES);
}

/* As the driver, it writes into the place of the first option in each try, whatever comes of it. */
EXPORT CUresult cuModuleLoadDataEx(
    CUmodule *module, const void *image, unsigned count, int *options, void **values);
CUresult cuModuleLoadDataEx(
    CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    bool has_log = count > 0 && values[0] == (void *)4096;
    *module = (CUmodule)gpu;
    if (count > 0)
        values[0] = NULL;
    if (is_full())
        return CUDA_ERROR_OUT_OF_MEMORY;
    return has_log ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Returns what shows that each argument came, in registers or on the stack. On a GPU that is full
 * to the last byte there is no room for the kernel's code. */
EXPORT CUresult cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx,
    unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra);
CUresult cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx,
    unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
    if (is_full())
        return CUDA_ERROR_OUT_OF_MEMORY;
    const uintptr_t each[] = {(uintptr_t)function, x, y, z, bx, by, bz, shared, (uintptr_t)stream,
        (uintptr_t)parameters, (uintptr_t)extra};
    uintptr_t sum = 0;
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
        sum += each[i] * (i + 1);
    return (CUresult)sum;
}

/* ---- what the library has no hook for ---- */

EXPORT CUresult cuTexRefSetMipmapLevelBias(void *texture, float bias);
CUresult cuTexRefSetMipmapLevelBias(void *texture, float bias)
{
    return (CUresult)(bias * 10);
}

EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

/* ---- by name ---- */

EXPORT CUresult cuGetProcAddress(
    const char *symbol, any_function **function, int version, uint64_t flags);
EXPORT CUresult cuGetProcAddress_v2(
    const char *symbol, any_function **function, int version, uint64_t flags, int *status);

#define FORM(name, since, streams, function)                                                       \
    {                                                                                              \
        name, since, streams, (any_function *)(function)                                           \
    }

/* The newest form that is not newer than the version asked for comes first. */
static const struct form {
    const char *name;
    int since, streams;
    any_function *function;
} forms[] = {
    FORM("cuInit", 2000, 1, cuInit),
    FORM("cuCtxGetDevice", 2000, 1, cuCtxGetDevice),
    FORM("cuLaunchKernel", 4000, 1, cuLaunchKernel),
    FORM("cuMemcpyHtoD", 3020, 1, cuMemcpyHtoD_v2),
    FORM("cuGraphLaunch", 10000, 1, cuGraphLaunch),
    FORM("cuLibraryLoadData", 12000, 1, cuLibraryLoadData),
    FORM("cuTexRefSetMipmapLevelBias", 5000, 1, cuTexRefSetMipmapLevelBias),
    FORM("cuDriverGetVersion", 2020, 1, cuDriverGetVersion),
    FORM("cuGetProcAddress", 12000, 1, cuGetProcAddress_v2),
    FORM("cuGetProcAddress", 11030, 1, cuGetProcAddress),
    FORM("cuMemAlloc", 99000, 1, mem_alloc_future),
    FORM("cuMemAlloc", 3020, 1, cuMemAlloc_v2),
    FORM("cuMemAlloc", 2000, 1, cuMemAlloc),
    FORM("cuMemFree", 3020, 1, cuMemFree_v2),
    FORM("cuMemCreate", 10020, 1, cuMemCreate),
    FORM("cuMemRelease", 10020, 1, cuMemRelease),
    FORM("cuMemAllocAsync", 11020, 2, cuMemAllocAsync_ptsz),
    FORM("cuMemAllocAsync", 11020, 1, cuMemAllocAsync),
    FORM("cuStreamSynchronize", 7000, 2, cuStreamSynchronize_ptsz),
    FORM("cuStreamSynchronize", 2000, 1, cuStreamSynchronize),
    FORM("cuCtxSynchronize", 13000, 1, cuCtxSynchronize_v2),
    FORM("cuCtxSynchronize", 2000, 1, cuCtxSynchronize),
};

CUresult cuGetProcAddress(const char *symbol, any_function **function, int version, uint64_t flags)
{
    *function = NULL;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !*function; i++)
        if (strcmp(forms[i].name, symbol) == 0 && version >= forms[i].since &&
            (forms[i].streams == 1 || flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
            *function = forms[i].function;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(
    const char *symbol, any_function **function, int version, uint64_t flags, int *status)
{
    CUresult r = cuGetProcAddress(symbol, function, version, flags);
    if (status)
        *status = r == CUDA_SUCCESS ? 0 : 1;
    return r;
}
