/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA driver's interface that the emulated libcuda has: the functions that a tool
 * needs to suspend processes, and those that a small process needs to allocate memory and to query
 * it. Names, numbers and layouts are those of NVIDIA's CUDA Driver API reference (CUDA 13.0).
 * Kernels cannot be run.
 */
#ifndef COLLOC_EMULATOR_CUDA_INTERFACE_H
#define COLLOC_EMULATOR_CUDA_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/suspension.h"

typedef int CUresult; /* enum cuda_result */
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUmemGenericAllocationHandle;

typedef struct {
    unsigned char bytes[16];
} CUuuid;

typedef struct {
    unsigned timeoutMs, reserved0;
    uint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct {
    uint64_t reserved[8];
} CUcheckpointCheckpointArgs, CUcheckpointUnlockArgs;

typedef struct {
    CUuuid oldUuid, newUuid;
} CUcheckpointGpuPair;

typedef struct {
    CUcheckpointGpuPair *gpuPairs;
    unsigned gpuPairsCount;
    char reserved[52];
} CUcheckpointRestoreArgs;

typedef struct {
    int type; /* 1: pinned */
    int requestedHandleTypes;
    struct {
        int type; /* 1: a device */
        int id;
    } location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct {
    char reserved[64];
} CUipcMemHandle;

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetProcAddress_v2(
    const char *symbol, void **function, int version, uint64_t flags, int *status);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
enum { CUDA_LIMIT_STACK = 0 };
CUresult cuCtxSetLimit(int limit, size_t size);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
void cuStreamPretendWork(void (*wait)(void));
CUresult cuCtxSynchronize(void);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
    const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuMemGetAllocationGranularity(
    size_t *granularity, const CUmemAllocationProp *prop, int option);
CUresult cuMemAddressReserve(
    CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes);
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags);
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const void *access, size_t count);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *memory);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);

CUresult cuCheckpointProcessGetState(int pid, int *state);
CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args);
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args);
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args);
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args);

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr at);
CUresult cuMemExportToShareableHandle(
    void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *handle, void *shareable, int type);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle);

/* Memory of this process, or that of another one which it has opened. */
enum { CUDA_BLOCKS_MAX = 64 };
#define CUDA_MEMORY_NAME "colloc-emulator-gpu%d-unit%d" /* of its memfd */
struct cuda_block {
    void *at;              /* its address, or its handle; NULL: unused */
    int64_t bytes;         /* of the GPU */
    int64_t foreign_bytes; /* of another process; 0: it is this one's */
    size_t host_bytes;     /* that `at` has an address for */
    CUdevice device;
    int memory;       /* a memfd with its content, */
    struct seat lent; /* and if `is_lent`, memory of this GPU, which the process does not see */
    bool is_lent;
    bool is_handle, is_exportable;
};

/* Returns the block with an address or a handle, or NULL. */
struct cuda_block *cuda_block_at(const void *at);

/* Makes a block of another process's memory, which it closes when it is released. Returns NULL:
 * there are too many, or this process does not use a GPU. */
struct cuda_block *cuda_block_of_memory(int memory, size_t bytes, size_t host_bytes);

/* Counts a block of memory of a GPU that this process does not see: as with NVIDIA's driver it
 * belongs to the last process that has it. Returns false when the GPU has too little. */
bool cuda_block_take_lent(struct cuda_block *block, struct seat seat);

/* Returns the current context, or NULL. */
CUcontext cuda_current_context(void);

/* Returns the world after cuInit, otherwise NULL. */
struct world *cuda_world(void);

/* Returns the unit behind a device of this process; -1 as gpu: no such device. */
struct seat cuda_seat(CUdevice device);

/* Returns the pid of the MPS server of which this process is a client; 0: it is none. */
pid_t cuda_mps_server(void);

/* Returns the GPU with this UUID, or -1. */
int cuda_find_gpu(const struct world *world, const CUuuid *uuid);

#endif
