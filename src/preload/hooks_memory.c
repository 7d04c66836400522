/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's functions that take and release GPU memory. Each calls the driver's own, waits when
 * that has no memory (memory_wait.h), and counts what the process then holds (ledger.h). Host
 * memory is not touched: its failures have the same number.
 */
#include "preload/allocation.h"
#include "preload/call_stubs.h"
#include "preload/carried_memory.h"
#include "preload/dlsym.h"
#include "preload/futex.h"
#include "preload/gate.h"
#include "preload/hook_table.h"
#include "preload/imports.h"
#include "preload/memory_wait.h"
#include "preload/process_state.h"

/* The memory of a context on an H200 with driver 580; on others it is 300 to 600 MiB. */
#define CONTEXT_BYTES (UINT64_C(512) << 20)

enum { POOLS_BEAT_MS = 100 }; /* chosen */

/* ---- queries to the driver ---- */

typedef CUresult get_pool(CUmemoryPool *pool, CUdevice device);
typedef CUresult get_attribute(CUmemoryPool pool, int attribute, void *value);

static uint64_t pool_attribute(CUmemoryPool pool, int attribute)
{
    DRIVER(get_attribute, "cuMemPoolGetAttribute");
    uint64_t value = 0;
    return call && call(pool, attribute, &value) == CUDA_SUCCESS ? value : 0;
}

static CUmemoryPool pool_of(int device)
{
    DRIVER(get_pool, "cuDeviceGetMemPool");
    CUmemoryPool pool = NULL;
    return call && call(&pool, device) == CUDA_SUCCESS ? pool : NULL;
}

/* ---- pools ---- */

/* The driver keeps the highest reservation of each pool itself, so that none is missed between two
 * of our looks. These are made under the gate: they are calls into the driver. */
static void look_at_pools(struct process_state *state)
{
    struct preload_page *page = gate_enter(state);
    futex_lock(&state->lock);
    for (int i = 0; i < POOLS_MAX; i++) {
        struct pool *pool = &state->pools[i];
        if (!pool->pool)
            continue;
        pool->held_bytes = pool_attribute(pool->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        uint64_t high = pool_attribute(pool->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
        pool->peak_bytes = high > pool->peak_bytes ? high : pool->peak_bytes;
        process_publish(state, pool->device);
    }
    futex_unlock(&state->lock);
    gate_leave(page);
}

static void note_pool(struct process_state *state, CUmemoryPool pool, int device, bool is_own)
{
    struct pool *place = NULL;
    if (!pool || device < 0 || device >= PRELOAD_DEVICES_MAX)
        return;
    atomic_fetch_or(&process_page(state)->flags, PRELOAD_USES_POOLS);
    futex_lock(&state->lock);
    for (int i = 0; i < POOLS_MAX; i++) {
        if (state->pools[i].pool == pool || (!state->pools[i].pool && !place))
            place = &state->pools[i];
        if (state->pools[i].pool == pool)
            break;
    }
    if (!place)
        state->ledger.incomplete = true;
    else if (!place->pool)
        *place = (struct pool){.pool = pool, .device = device, .is_own = is_own};
    futex_unlock(&state->lock);
}

/* ---- an allocation ---- */

/* `fresh_bytes`: what the allocation adds to the memory that the process holds. */
static bool is_over_cap(struct memory_wait *wait, uint64_t fresh_bytes)
{
    struct process_state *state = wait->state;
    uint64_t cap = atomic_load_explicit(&process_page(state)->cap_bytes, memory_order_relaxed);
    bool over = false;
    if (cap && !wait->lifts_cap) {
        futex_lock(&state->lock);
        uint64_t held = state->ledger.devices[wait->device].held_bytes;
        for (int i = 0; i < POOLS_MAX; i++)
            if (state->pools[i].pool && state->pools[i].device == wait->device)
                held += state->pools[i].held_bytes;
        futex_unlock(&state->lock);
        over = held + fresh_bytes > cap;
    }
    if (wait->reason != PRELOAD_NEEDS_CONTEXT)
        wait->reason = over ? PRELOAD_OVER_CAP : PRELOAD_NEEDS_MEMORY;
    return over;
}

/* As MEMORY_WAIT_TRY, within the cap. */
#define ALLOCATE(RESULT, WAIT, FRESH_BYTES, CALL)                                                  \
    MEMORY_WAIT_TRY(                                                                               \
        RESULT, WAIT, is_over_cap(WAIT, FRESH_BYTES) ? CUDA_ERROR_OUT_OF_MEMORY : (CALL))

static void add_block(struct process_state *state, CUdeviceptr at, const struct ledger_block *block)
{
    futex_lock(&state->lock);
    ledger_add_block(&state->ledger, at, block);
    process_publish(state, block->device);
    futex_unlock(&state->lock);
}

static void count_block(struct memory_wait *wait, CUresult r, CUdeviceptr at, uint64_t bytes)
{
    memory_wait_end(wait, r == CUDA_SUCCESS);
    if (r != CUDA_SUCCESS)
        return;
    const struct ledger_block block = {bytes, allocation_current_context(), wait->device};
    add_block(wait->state, at, &block);
}

/* ---- blocks ---- */

/* NCCL's buffers are mapped by the other ranks, as mapped memory cannot be: they are no blocks. */
static CUresult allocate_block(const struct memory_wait *wait, CUdeviceptr *at, size_t bytes)
{
    CUresult r;
    if (calls_are_counted() && !dlsym_is_nccl(wait->caller) &&
        carried_allocate(wait->state, wait->device, bytes, at, &r))
        return r;
    return HOOK_CALL(cuMemAlloc_v2)(at, bytes);
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    struct memory_wait wait;
    CUresult r;
    if (!at || !bytes ||
        !allocation_begin(&wait, FAILURE_OF_BLOCK, bytes, allocation_current_device(), CALLER))
        return HOOK_CALL(cuMemAlloc_v2)(at, bytes);
    ALLOCATE(r, &wait, bytes, allocate_block(&wait, at, bytes));
    count_block(&wait, r, *at, bytes);
    return r;
}

/* The driver chooses the pitch: it is found out with one row. */
static CUresult allocate_rows(const struct memory_wait *wait, CUdeviceptr *at, size_t *pitch,
    size_t width, size_t height, unsigned element)
{
    CUdeviceptr row;
    size_t row_pitch;
    CUresult r;
    if (!calls_are_counted() ||
        HOOK_CALL(cuMemAllocPitch_v2)(&row, &row_pitch, width, 1, element) != CUDA_SUCCESS)
        return HOOK_CALL(cuMemAllocPitch_v2)(at, pitch, width, height, element);
    HOOK_CALL(cuMemFree_v2)(row);
    if (!carried_allocate(wait->state, wait->device, row_pitch * height, at, &r))
        return HOOK_CALL(cuMemAllocPitch_v2)(at, pitch, width, height, element);
    *pitch = row_pitch;
    return r;
}

CUresult cuMemAllocPitch_v2(
    CUdeviceptr *at, size_t *pitch, size_t width, size_t height, unsigned element)
{
    struct memory_wait wait;
    size_t bytes = width * height; /* at least */
    CUresult r;
    if (!at || !pitch || !bytes ||
        !allocation_begin(&wait, FAILURE_OF_BLOCK, bytes, allocation_current_device(), CALLER))
        return HOOK_CALL(cuMemAllocPitch_v2)(at, pitch, width, height, element);
    ALLOCATE(r, &wait, bytes, allocate_rows(&wait, at, pitch, width, height, element));
    count_block(&wait, r, *at, *pitch * height);
    return r;
}

/* The driver moves such memory to the host when a GPU is full: it does not fail. */
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
    process_note_use(PRELOAD_USES_MANAGED);
    return HOOK_CALL(cuMemAllocManaged)(at, bytes, flags);
}

/* A block while the driver frees it. */
struct freed_block {
    struct process_state *state; /* NULL: it was not counted, as memory of a pool */
    CUdeviceptr at;
    struct ledger_block counted;
};

/* Forgotten first: once it is free, another thread may get the same address. */
static struct freed_block begin_free(CUdeviceptr at)
{
    struct freed_block block = {.at = at};
    struct process_state *state = process_state_peek();
    if (!state)
        return block;
    futex_lock(&state->lock);
    if (ledger_remove_block(&state->ledger, at, &block.counted)) {
        block.state = state;
        process_publish(state, block.counted.device);
    }
    futex_unlock(&state->lock);
    return block;
}

static CUresult end_free(CUresult r, const struct freed_block *block)
{
    if (r != CUDA_SUCCESS && block->state)
        add_block(block->state, block->at, &block->counted);
    return r;
}

CUresult cuMemFree_v2(CUdeviceptr at)
{
    struct freed_block block = begin_free(at);
    CUresult r;
    if (!carried_free(at, &r))
        r = HOOK_CALL(cuMemFree_v2)(at);
    return end_free(r, &block);
}

/* It frees blocks of cuMemAlloc, too: when the stream reaches it, so that less may be counted for a
 * moment than is held. A block that is carried is freed now, after the work of all streams. */
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    struct freed_block block = begin_free(at);
    CUresult r;
    if (!carried_free(at, &r))
        r = HOOK_CALL(cuMemFreeAsync)(at, stream);
    return end_free(r, &block);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr at, CUstream stream)
{
    struct freed_block block = begin_free(at);
    CUresult r;
    if (!carried_free(at, &r))
        r = HOOK_CALL(cuMemFreeAsync_ptsz)(at, stream);
    return end_free(r, &block);
}

/* ---- physical memory and its mappings ---- */

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
    const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct memory_wait wait;
    CUresult r;
    if (!handle || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !bytes ||
        !allocation_begin(&wait, FAILURE_OF_HANDLE, bytes, prop->location.id, CALLER))
        return HOOK_CALL(cuMemCreate)(handle, bytes, prop, flags);
    ALLOCATE(r, &wait, bytes, HOOK_CALL(cuMemCreate)(handle, bytes, prop, flags));
    memory_wait_end(&wait, r == CUDA_SUCCESS);
    if (r == CUDA_SUCCESS) {
        futex_lock(&wait.state->lock);
        ledger_add_handle(&wait.state->ledger, *handle, bytes, prop->location.id);
        if (wait.state->collectives.under_way) /* NCCL does this in another thread */
            ledger_note_nccl(&wait.state->ledger, *handle);
        process_publish(wait.state, prop->location.id);
        futex_unlock(&wait.state->lock);
    }
    return r;
}

/* Forgotten first, as a block: without mappings, the driver uses the handle again. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct process_state *state = process_state_peek();
    uint64_t bytes = 0;
    int device = 0;
    if (state) {
        futex_lock(&state->lock);
        bytes = ledger_release_handle(&state->ledger, handle, &device);
        if (bytes)
            process_publish(state, device);
        futex_unlock(&state->lock);
    }
    CUresult r = HOOK_CALL(cuMemRelease)(handle);
    if (r != CUDA_SUCCESS && state) {
        futex_lock(&state->lock);
        if (bytes)
            ledger_add_handle(&state->ledger, handle, bytes, device);
        else
            ledger_retain_handle(&state->ledger, handle);
        process_publish(state, device);
        futex_unlock(&state->lock);
    }
    return r;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags)
{
    CUresult r = HOOK_CALL(cuMemMap)(at, bytes, offset, handle, flags);
    struct process_state *state = process_state_peek();
    if (r == CUDA_SUCCESS && state) {
        memory_wait_forget_failures(FAILURE_OF_HANDLE);
        futex_lock(&state->lock);
        ledger_map(&state->ledger, at, bytes, handle);
        futex_unlock(&state->lock);
    }
    return r;
}

static void publish_all(struct process_state *state)
{
    for (int i = 0; i < PRELOAD_DEVICES_MAX; i++)
        if (state->ledger.devices[i].peak_bytes)
            process_publish(state, i);
}

/* The program does not know that such a block is a mapping. */
static bool is_carried(CUdeviceptr at)
{
    struct carried_answer answer;
    return carried_find(at, &answer);
}

/* Forgotten first: the driver uses the addresses again, and handles that have no other reference.
 * If it refuses, which of the mappings are still there is not known. */
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    struct process_state *state = process_state_peek();
    size_t n = 0;
    if (state) {
        futex_lock(&state->lock);
        n = ledger_unmap(&state->ledger, at, bytes);
        publish_all(state);
        futex_unlock(&state->lock);
    }
    CUresult r = is_carried(at) ? CUDA_ERROR_INVALID_VALUE : HOOK_CALL(cuMemUnmap)(at, bytes);
    if (r != CUDA_SUCCESS && n > 0) {
        futex_lock(&state->lock);
        state->ledger.incomplete = true;
        publish_all(state);
        futex_unlock(&state->lock);
    }
    return r;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at)
{
    if (is_carried((CUdeviceptr)(uintptr_t)at))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = HOOK_CALL(cuMemRetainAllocationHandle)(handle, at);
    struct process_state *state = process_state_peek();
    if (r == CUDA_SUCCESS && state) {
        futex_lock(&state->lock);
        ledger_retain_handle(&state->ledger, *handle);
        futex_unlock(&state->lock);
    }
    return r;
}

/* ---- stream-ordered allocations ---- */

/* The growth of the pool's reservation by an allocation. The driver is queried only under a cap,
 * and not while a stream is being captured. */
static uint64_t fresh_bytes(struct process_state *state, CUmemoryPool pool, uint64_t bytes)
{
    if (!atomic_load_explicit(&process_page(state)->cap_bytes, memory_order_relaxed) ||
        atomic_load(&state->captures))
        return 0;
    look_at_pools(state);
    uint64_t reserved = pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) + bytes;
    return used > reserved ? used - reserved : 0;
}

/* Asking for the pool costs a call into the driver, so the pools of a GPU are noted once. */
static CUmemoryPool current_pool(struct process_state *state, int device)
{
    for (int i = 0; i < POOLS_MAX; i++)
        if (state->pools[i].pool && state->pools[i].device == device && !state->pools[i].is_own)
            return state->pools[i].pool;
    CUmemoryPool pool = pool_of(device);
    note_pool(state, pool, device, false);
    return pool;
}

/* A pool grows by what its allocations need and frees at synchronisations, so the driver has tried
 * all there is when it fails: that failure is final. */
static bool pool_allocation_begin(struct memory_wait *wait, uint64_t bytes, int device)
{
    if (!allocation_begin(wait, FAILURE_FINAL, bytes, device, NULL))
        return false;
    if (!atomic_load(&wait->state->captures) &&
        process_is_due(&wait->state->pools_ms, POOLS_BEAT_MS))
        look_at_pools(wait->state);
    return true;
}

static CUresult allocate_async(
    __typeof__(&cuMemAllocAsync) driver, CUdeviceptr *at, size_t bytes, CUstream stream)
{
    struct memory_wait wait;
    CUresult r;
    if (!bytes || !pool_allocation_begin(&wait, bytes, allocation_current_device()))
        return driver(at, bytes, stream);
    CUmemoryPool pool = current_pool(wait.state, wait.device);
    ALLOCATE(r, &wait, fresh_bytes(wait.state, pool, bytes), driver(at, bytes, stream));
    memory_wait_end(&wait, r == CUDA_SUCCESS);
    return r;
}

CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    return allocate_async(HOOK_CALL(cuMemAllocAsync), at, bytes, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    return allocate_async(HOOK_CALL(cuMemAllocAsync_ptsz), at, bytes, stream);
}

static CUresult allocate_from_pool(__typeof__(&cuMemAllocFromPoolAsync) driver, CUdeviceptr *at,
    size_t bytes, CUmemoryPool pool, CUstream stream)
{
    struct memory_wait wait;
    CUresult r;
    if (!bytes || !pool_allocation_begin(&wait, bytes, allocation_current_device()))
        return driver(at, bytes, pool, stream);
    ALLOCATE(r, &wait, fresh_bytes(wait.state, pool, bytes), driver(at, bytes, pool, stream));
    memory_wait_end(&wait, r == CUDA_SUCCESS);
    return r;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return allocate_from_pool(HOOK_CALL(cuMemAllocFromPoolAsync), at, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(
    CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return allocate_from_pool(HOOK_CALL(cuMemAllocFromPoolAsync_ptsz), at, bytes, pool, stream);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult r = HOOK_CALL(cuMemPoolCreate)(pool, props);
    struct process_state *state = r == CUDA_SUCCESS ? process_state_get() : NULL;
    if (state && props && props->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        note_pool(state, *pool, props->location.id, true);
    return r;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    struct process_state *state = process_state_peek();
    for (int i = 0; state && i < POOLS_MAX; i++) {
        futex_lock(&state->lock);
        if (pool && state->pools[i].pool == pool) {
            int device = state->pools[i].device;
            state->pools[i] = (struct pool){0};
            process_publish(state, device);
        }
        futex_unlock(&state->lock);
    }
    return HOOK_CALL(cuMemPoolDestroy)(pool);
}

/* ---- contexts ---- */

static CUresult note_primary_context(CUresult r, const CUcontext *context, CUdevice device)
{
    struct process_state *state = process_state_peek();
    if (r != CUDA_SUCCESS || !state || device < 0 || device >= PRELOAD_DEVICES_MAX)
        return r;
    futex_lock(&state->lock);
    state->primary_contexts[device] = (uint64_t)(uintptr_t)*context;
    futex_unlock(&state->lock);
    return r;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    struct memory_wait wait;
    CUresult r;
    if (!allocation_begin(&wait, FAILURE_FINAL, CONTEXT_BYTES, device, CALLER)) {
        r = HOOK_CALL(cuDevicePrimaryCtxRetain)(context, device);
        return note_primary_context(r, context, device);
    }
    wait.reason = PRELOAD_NEEDS_CONTEXT;
    MEMORY_WAIT_TRY(r, &wait, HOOK_CALL(cuDevicePrimaryCtxRetain)(context, device));
    memory_wait_end(&wait, r == CUDA_SUCCESS);
    return note_primary_context(r, context, device);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    struct memory_wait wait;
    CUresult r;
    if (!allocation_begin(&wait, FAILURE_FINAL, CONTEXT_BYTES, device, CALLER))
        return HOOK_CALL(cuCtxCreate_v2)(context, flags, device);
    wait.reason = PRELOAD_NEEDS_CONTEXT;
    MEMORY_WAIT_TRY(r, &wait, HOOK_CALL(cuCtxCreate_v2)(context, flags, device));
    memory_wait_end(&wait, r == CUDA_SUCCESS);
    if (r == CUDA_SUCCESS)
        process_note_use(PRELOAD_HAS_CONTEXTS);
    return r;
}

/* Newer forms: the carrier must know. */
CUresult cuCtxCreate_v3(
    CUcontext *context, void *affinities, int count, unsigned flags, CUdevice device)
{
    process_note_use(PRELOAD_HAS_CONTEXTS);
    return HOOK_CALL(cuCtxCreate_v3)(context, affinities, count, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device)
{
    process_note_use(PRELOAD_HAS_CONTEXTS);
    return HOOK_CALL(cuCtxCreate_v4)(context, parameters, flags, device);
}

CUresult cuGreenCtxCreate(void **context, void *resources, CUdevice device, unsigned flags)
{
    process_note_use(PRELOAD_HAS_CONTEXTS);
    return HOOK_CALL(cuGreenCtxCreate)(context, resources, device, flags);
}

/* With the lock. A capture ends with the context of its stream. Which context a stream is of is not
 * noted: captures in others are forgotten, too, and an allocation may wait during them. */
static void forget_captures(struct process_state *state)
{
    for (int i = 0; i < CAPTURES_MAX; i++)
        state->captured[i] = NULL;
    atomic_store(&state->captures, 0);
}

/* Blocks of other contexts of the device stay. Which blocks are the primary context's is not known
 * where this process has not retained it: then the sums may be too high. */
static void forget_primary_context(CUdevice device)
{
    struct process_state *state = process_state_peek();
    if (!state || device < 0 || device >= PRELOAD_DEVICES_MAX)
        return;
    futex_lock(&state->lock);
    uint64_t context = state->primary_contexts[device];
    futex_unlock(&state->lock);
    carried_forget_context(state, context);
    imports_forget_context(state, context);
    futex_lock(&state->lock);
    state->ledger.incomplete |= context == 0;
    ledger_remove_blocks_of_context(&state->ledger, context);
    forget_captures(state);
    process_publish(state, device);
    futex_unlock(&state->lock);
}

typedef CUresult get_primary_state(CUdevice device, unsigned *flags, int *active);

/* Did the primary context end with its last reference? One whose state is not known counts on. */
static bool has_primary_ended(CUdevice device)
{
    DRIVER(get_primary_state, "cuDevicePrimaryCtxGetState");
    unsigned flags;
    int active;
    return call && call(device, &flags, &active) == CUDA_SUCCESS && !active;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult r = HOOK_CALL(cuDevicePrimaryCtxRelease_v2)(device);
    if (r == CUDA_SUCCESS && has_primary_ended(device))
        forget_primary_context(device);
    return r;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult r = HOOK_CALL(cuDevicePrimaryCtxReset_v2)(device);
    if (r == CUDA_SUCCESS)
        forget_primary_context(device);
    return r;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult r = HOOK_CALL(cuCtxDestroy_v2)(context);
    struct process_state *state = process_state_peek();
    if (r == CUDA_SUCCESS && state) {
        imports_forget_context(state, (uint64_t)(uintptr_t)context);
        futex_lock(&state->lock);
        ledger_remove_blocks_of_context(&state->ledger, (uint64_t)(uintptr_t)context);
        forget_captures(state);
        publish_all(state);
        futex_unlock(&state->lock);
    }
    return r;
}
