/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of an allocation, and its first step. */
#include "preload/allocation.h"

#include <stdatomic.h>
#include <string.h>

#include "preload/futex.h"
#include "preload/hook_table.h"

typedef CUresult get_device(CUdevice *device);
typedef CUresult get_context(CUcontext *context);
typedef CUresult get_uuid(unsigned char *uuid, CUdevice device);

int allocation_current_device(void)
{
    DRIVER(get_device, "cuCtxGetDevice");
    CUdevice device;
    return call && call(&device) == CUDA_SUCCESS ? device : -1;
}

uint64_t allocation_current_context(void)
{
    DRIVER(get_context, "cuCtxGetCurrent");
    CUcontext context;
    return call && call(&context) == CUDA_SUCCESS ? (uint64_t)(uintptr_t)context : 0;
}

static void read_uuid(unsigned char *ret_uuid, int device)
{
    DRIVER(get_uuid, "cuDeviceGetUuid_v2"); /* of a MIG instance its own */
    if (!call || call(ret_uuid, device) != CUDA_SUCCESS)
        memset(ret_uuid, 0, 16);
}

static void know_uuid(struct process_state *state, int device)
{
    uint32_t bit = UINT32_C(1) << device;
    if (atomic_load_explicit(&state->known_uuids, memory_order_acquire) & bit)
        return;
    unsigned char uuid[16];
    read_uuid(uuid, device);
    futex_lock(&state->lock);
    memcpy(state->uuids[device], uuid, sizeof(uuid));
    process_publish(state, device);
    futex_unlock(&state->lock);
    atomic_fetch_or_explicit(&state->known_uuids, bit, memory_order_release);
}

bool allocation_begin(
    struct memory_wait *wait, enum failure_kind kind, uint64_t bytes, int device, void *caller)
{
    struct process_state *state = process_state_get();
    if (!state || device < 0 || device >= PRELOAD_DEVICES_MAX)
        return false;
    process_beat(state);
    know_uuid(state, device);
    *wait = (struct memory_wait){
        .state = state, .kind = kind, .bytes = bytes, .device = device, .caller = caller};
    return true;
}
