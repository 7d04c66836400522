/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's functions by which memory is used by another process or device, and what a program
 * asks about a block. Suspensions must know of the former. Legacy IPC of blocks, which the driver
 * refuses for mapped memory, is the library's own (share_handle.h).
 */
#include <string.h>

#include "preload/allocation.h"
#include "preload/carried_memory.h"
#include "preload/dlsym.h"
#include "preload/exports.h"
#include "preload/hook_table.h"
#include "preload/imports.h"
#include "preload/process_state.h"

/* NCCL shares its own buffers with the other ranks, which stay where they are. A block that it
 * shares is kept. */
#define NOTE_SHARING(FLAG)                                                                         \
    do {                                                                                           \
        if (!dlsym_is_nccl(CALLER))                                                                \
            process_note_use(FLAG);                                                                \
    } while (0)

/* ---- legacy IPC ---- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    struct share_handle own;
    CUresult r;
    NOTE_SHARING(PRELOAD_USES_IPC);
    if (!handle || !exports_handle(at, &own, &r))
        return HOOK_CALL(cuIpcGetMemHandle)(handle, at);
    if (r == CUDA_SUCCESS)
        memcpy(handle, &own, sizeof own);
    return r;
}

static CUresult open_handle(__typeof__(&cuIpcOpenMemHandle) driver, CUdeviceptr *at,
    const CUipcMemHandle *handle, unsigned flags)
{
    struct share_handle own;
    if (!at || !share_handle_read(handle, &own))
        return driver(at, *handle, flags);
    return imports_open(&own, flags, at);
}

/* As before CUDA 11. */
CUresult cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    NOTE_SHARING(PRELOAD_USES_IPC);
    return open_handle(HOOK_CALL(cuIpcOpenMemHandle), at, &handle, flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    NOTE_SHARING(PRELOAD_USES_IPC);
    return open_handle(HOOK_CALL(cuIpcOpenMemHandle_v2), at, &handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    CUresult r;
    return imports_close(at, &r) ? r : HOOK_CALL(cuIpcCloseMemHandle)(at);
}

/* ---- other ways ---- */

CUresult cuMemExportToShareableHandle(
    void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)
{
    NOTE_SHARING(PRELOAD_EXPORTS);
    return HOOK_CALL(cuMemExportToShareableHandle)(shareable, handle, type, flags);
}

CUresult cuMemGetHandleForAddressRange(
    void *handle, CUdeviceptr at, size_t bytes, int type, unsigned long long flags)
{
    NOTE_SHARING(PRELOAD_EXPORTS);
    carried_keep(at, bytes);
    return HOOK_CALL(cuMemGetHandleForAddressRange)(handle, at, bytes, type, flags);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr at,
    size_t bytes, unsigned long long flags)
{
    carried_keep(at, bytes);
    return HOOK_CALL(cuMulticastBindAddr)(multicast, offset, at, bytes, flags);
}

/* The device of the current context may use the memory of the other one. */
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CUresult r = HOOK_CALL(cuCtxEnablePeerAccess)(peer, flags);
    if (r == CUDA_SUCCESS)
        carried_allow_peer(peer, allocation_current_device());
    return r;
}

/* ---- what a program asks of a block ---- */

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
    struct carried_answer answer;
    if (!carried_find(at, &answer))
        return HOOK_CALL(cuMemGetAddressRange_v2)(base, bytes, at);
    if (base)
        *base = answer.block.at;
    if (bytes)
        *bytes = answer.block.bytes;
    return CUDA_SUCCESS;
}

/* The driver says of mapped memory that it is of no context, as long as it is mapped, not for
 * legacy IPC, and for the handles that it was made for. What the driver has written is corrected in
 * the size that it has: it clears all of a number, and a truth's first byte is 1. */
static void correct_attribute(void *value, int attribute, const struct carried_answer *answer)
{
    if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT)
        *(CUcontext *)value = answer->context;
    else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(CUdeviceptr *)value = answer->block.at;
    else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        *(size_t *)value = answer->block.bytes;
    else if (attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE && answer->is_own)
        *(unsigned char *)value = 1;
    else if (attribute == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
        *(unsigned char *)value = 0;
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr at)
{
    struct carried_answer answer;
    CUresult r = HOOK_CALL(cuPointerGetAttribute)(value, attribute, at);
    if (r == CUDA_SUCCESS && carried_find(at, &answer))
        correct_attribute(value, attribute, &answer);
    return r;
}

CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr at)
{
    struct carried_answer answer;
    CUresult r = HOOK_CALL(cuPointerGetAttributes)(count, attributes, values, at);
    if (r == CUDA_SUCCESS && carried_find(at, &answer))
        for (unsigned i = 0; i < count; i++)
            correct_attribute(values[i], attributes[i], &answer);
    return r;
}
