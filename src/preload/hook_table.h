/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the driver that the library stands before, and how programs find them.
 *
 * A program finds a function of the driver in one of three ways: the dynamic linker binds it (the
 * library exports the name and comes first), dlsym returns it (dlsym.c), or cuGetProcAddress does,
 * which is what the CUDA runtime uses. The last takes a name without suffix, a version and a kind
 * of stream, and returns the newest form of the function that this version had.
 */
#ifndef COLLOC_PRELOAD_HOOK_TABLE_H
#define COLLOC_PRELOAD_HOOK_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "preload/driver_abi.h"

/*
 * HOOK(function, name, version, streams): an exported function; the name and a version with which
 * cuGetProcAddress returns this form of it, not an older or newer one; and the kind of stream.
 */
/* Functions that may take memory of the driver's own (hooks_code.c). */
#define CODE_HOOK_LIST(HOOK)                                                                       \
    HOOK(cuModuleLoad, "cuModuleLoad", 2000, 1)                                                    \
    HOOK(cuModuleLoadData, "cuModuleLoadData", 2000, 1)                                            \
    HOOK(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, 1)                                        \
    HOOK(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, 1)                                  \
    HOOK(cuModuleGetFunction, "cuModuleGetFunction", 2000, 1)                                      \
    HOOK(cuModuleGetGlobal_v2, "cuModuleGetGlobal", 3020, 1)                                       \
    HOOK(cuLibraryLoadData, "cuLibraryLoadData", 12000, 1)                                         \
    HOOK(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, 1)                                 \
    HOOK(cuLibraryGetModule, "cuLibraryGetModule", 12000, 1)                                       \
    HOOK(cuLibraryGetGlobal, "cuLibraryGetGlobal", 12000, 1)                                       \
    HOOK(cuKernelGetFunction, "cuKernelGetFunction", 12000, 1)                                     \
    HOOK(cuKernelGetAttribute, "cuKernelGetAttribute", 12000, 1)                                   \
    HOOK(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, 1)                                   \
    HOOK(cuFuncLoad, "cuFuncLoad", 12040, 1)                                                       \
    HOOK(cuFuncGetAttribute, "cuFuncGetAttribute", 2020, 1)                                        \
    HOOK(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, 1)                                        \
    HOOK(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                              \
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, 1)                                    \
    HOOK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                     \
        "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000, 1)                           \
    HOOK(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize", 6050, 1)            \
    HOOK(cuOccupancyMaxPotentialBlockSizeWithFlags, "cuOccupancyMaxPotentialBlockSizeWithFlags",   \
        7000, 1)                                                                                   \
    HOOK(cuOccupancyAvailableDynamicSMemPerBlock, "cuOccupancyAvailableDynamicSMemPerBlock",       \
        10020, 1)                                                                                  \
    HOOK(cuOccupancyMaxPotentialClusterSize, "cuOccupancyMaxPotentialClusterSize", 11070, 1)       \
    HOOK(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", 11070, 1)                   \
    HOOK(cuStreamCreate, "cuStreamCreate", 2000, 1)                                                \
    HOOK(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, 1)                        \
    HOOK(cuEventCreate, "cuEventCreate", 2000, 1)                                                  \
    HOOK(cuLaunchKernel, "cuLaunchKernel", 4000, 1)                                                \
    HOOK(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, 2)                                           \
    HOOK(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, 1)                                           \
    HOOK(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, 2)                                      \
    HOOK(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, 1)                          \
    HOOK(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", 9000, 2)

#define HOOK_LIST(HOOK)                                                                            \
    HOOK(cuGetProcAddress, "cuGetProcAddress", 11030, 1)                                           \
    HOOK(cuGetProcAddress_v2, "cuGetProcAddress", 12000, 1)                                        \
    HOOK(cuMemAlloc_v2, "cuMemAlloc", 3020, 1)                                                     \
    HOOK(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 1)                                           \
    HOOK(cuMemAllocManaged, "cuMemAllocManaged", 6000, 1)                                          \
    HOOK(cuMemFree_v2, "cuMemFree", 3020, 1)                                                       \
    HOOK(cuMemFreeAsync, "cuMemFreeAsync", 11020, 1)                                               \
    HOOK(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 2)                                          \
    HOOK(cuMemCreate, "cuMemCreate", 10020, 1)                                                     \
    HOOK(cuMemRelease, "cuMemRelease", 10020, 1)                                                   \
    HOOK(cuMemMap, "cuMemMap", 10020, 1)                                                           \
    HOOK(cuMemUnmap, "cuMemUnmap", 10020, 1)                                                       \
    HOOK(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 1)                     \
    HOOK(cuMemExportToShareableHandle, "cuMemExportToShareableHandle", 10020, 1)                   \
    HOOK(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", 11070, 1)                 \
    HOOK(cuMulticastBindAddr, "cuMulticastBindAddr", 12010, 1)                                     \
    HOOK(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, 1)                                  \
    HOOK(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, 1)                                 \
    HOOK(cuPointerGetAttribute, "cuPointerGetAttribute", 4000, 1)                                  \
    HOOK(cuPointerGetAttributes, "cuPointerGetAttributes", 7000, 1)                                \
    HOOK(cuMemAllocAsync, "cuMemAllocAsync", 11020, 1)                                             \
    HOOK(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 2)                                        \
    HOOK(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 1)                             \
    HOOK(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 2)                        \
    HOOK(cuMemPoolCreate, "cuMemPoolCreate", 11020, 1)                                             \
    HOOK(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 1)                                           \
    HOOK(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 1)                            \
    HOOK(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 1)                      \
    HOOK(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 1)                          \
    HOOK(cuCtxCreate_v2, "cuCtxCreate", 3020, 1)                                                   \
    HOOK(cuCtxCreate_v3, "cuCtxCreate", 11040, 1)                                                  \
    HOOK(cuCtxCreate_v4, "cuCtxCreate", 12050, 1)                                                  \
    HOOK(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, 1)                                           \
    HOOK(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 1)                                                 \
    HOOK(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010, 1)                                          \
    HOOK(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010, 1)                                        \
    HOOK(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, 1)                                    \
    HOOK(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, 1)                                      \
    HOOK(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, 1)                                                 \
    HOOK(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", 7000, 2)                                            \
    HOOK(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, 1)                                       \
    HOOK(cuMemcpyHtoDAsync_v2_ptsz, "cuMemcpyHtoDAsync", 7000, 2)                                  \
    HOOK(cuGraphLaunch, "cuGraphLaunch", 10000, 1)                                                 \
    HOOK(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, 2)                                            \
    HOOK(cuGraphUpload, "cuGraphUpload", 11010, 1)                                                 \
    HOOK(cuGraphUpload_ptsz, "cuGraphUpload", 11010, 2)                                            \
    HOOK(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, 1)                                    \
    HOOK(cuGraphInstantiate_v12000, "cuGraphInstantiate", 12000, 1)                                \
    HOOK(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, 1)                     \
    HOOK(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, 1)                   \
    HOOK(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 12000, 2)              \
    HOOK(cuGraphDestroy, "cuGraphDestroy", 10000, 1)                                               \
    HOOK(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, 1)                                       \
    HOOK(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, 1)                                \
    HOOK(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, 2)                           \
    HOOK(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, 1)                     \
    HOOK(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, 2)                \
    HOOK(cuStreamEndCapture, "cuStreamEndCapture", 10000, 1)                                       \
    HOOK(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, 2)                                  \
    HOOK(cuStreamDestroy_v2, "cuStreamDestroy", 4000, 1)                                           \
    HOOK(cuStreamSynchronize, "cuStreamSynchronize", 2000, 1)                                      \
    HOOK(cuStreamSynchronize_ptsz, "cuStreamSynchronize", 7000, 2)                                 \
    HOOK(cuCtxSynchronize, "cuCtxSynchronize", 2000, 1)                                            \
    HOOK(cuCtxSynchronize_v2, "cuCtxSynchronize", 13000, 1)                                        \
    CODE_HOOK_LIST(HOOK)

#define HOOK_ID(function, name, version, streams) HOOK_##function,
enum hook { HOOK_LIST(HOOK_ID) HOOK_COUNT };
#undef HOOK_ID

typedef void any_function(void);
typedef size_t shared_for_block(int threads); /* CUoccupancyB2DSize */

/* The library's functions, by the names of the driver (hooks_*.c). */
CUresult cuGetProcAddress(const char *symbol, any_function **function, int version, uint64_t flags);
CUresult cuGetProcAddress_v2(
    const char *symbol, any_function **function, int version, uint64_t flags, int *status);
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
CUresult cuMemAllocPitch_v2(
    CUdeviceptr *at, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr at, CUstream stream);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
    const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at);
CUresult cuMemExportToShareableHandle(
    void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags);
CUresult cuMemGetHandleForAddressRange(
    void *handle, CUdeviceptr at, size_t bytes, int type, unsigned long long flags);
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr at,
    size_t bytes, unsigned long long flags);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at);
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr at);
CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr at);
CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *at, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(
    CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v3(
    CUcontext *context, void *affinities, int count, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device);
CUresult cuGreenCtxCreate(void **context, void *resources, CUdevice device, unsigned flags);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at);
CUresult cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr at);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream);
CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream);
CUresult cuGraphUpload(CUgraphExec graph, CUstream stream);
CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream);
CUresult cuGraphInstantiate_v2(
    CUgraphExec *executable, CUgraph graph, void **node, char *text, size_t size);
/* By cuGetProcAddress only, which returns cuGraphInstantiateWithFlags for it. */
CUresult cuGraphInstantiate_v12000(
    CUgraphExec *executable, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiateWithFlags(
    CUgraphExec *executable, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph, void *params);
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *executable, CUgraph graph, void *params);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec executable);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext context);

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const void *dependencies,
    const void *edges, size_t count, int mode);
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const void *dependencies,
    const void *edges, size_t count, int mode);

CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(
    CUmodule *module, const void *image, unsigned count, int *options, void **values);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
    void **jit_values, unsigned jit_count, int *options, void **values, unsigned count);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit_options,
    void **jit_values, unsigned jit_count, int *options, void **values, unsigned count);
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUresult cuLibraryGetGlobal(CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device);
CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device);
CUresult cuFuncLoad(CUfunction function);
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int threads, size_t shared_bytes);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, CUfunction function, int threads, size_t shared_bytes, unsigned flags);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
    shared_for_block *shared_bytes_of, size_t shared_bytes, int most);
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
    shared_for_block *shared_bytes_of, size_t shared_bytes, int most, unsigned flags);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(
    size_t *shared_bytes, CUfunction function, int blocks, int threads);
CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function, const void *config);
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const void *config);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
CUresult cuEventCreate(CUevent *event, unsigned flags);

/* The same with each kind of stream. */
#define LAUNCH_FUNCTIONS(SUFFIX)                                                                   \
    CUresult cuLaunchKernel##SUFFIX(CUfunction function, unsigned grid_x, unsigned grid_y,         \
        unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,                     \
        unsigned shared_bytes, CUstream stream, void **parameters, void **extra);                  \
    CUresult cuLaunchKernelEx##SUFFIX(                                                             \
        const void *config, CUfunction function, void **parameters, void **extra);                 \
    CUresult cuLaunchCooperativeKernel##SUFFIX(CUfunction function, unsigned grid_x,               \
        unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,    \
        unsigned shared_bytes, CUstream stream, void **parameters)
LAUNCH_FUNCTIONS();
LAUNCH_FUNCTIONS(_ptsz);
#undef LAUNCH_FUNCTIONS

/* Returns which hook is exported by this name, or -1. */
int hook_find(const char *function);

/* Returns whether it is one of the library's functions. */
bool hook_is_own(any_function *function);

/* Returns the library's function. */
any_function *hook_function(enum hook hook);

/*
 * Takes a function of the driver that a program has found for itself.
 *
 * Returns the library's function for it, or `function` when the hook already stands before another
 * one: a second driver library goes without.
 */
any_function *hook_stand_before(enum hook hook, any_function *function);

/* Returns the driver's function. When there is none, one that returns CUDA_ERROR_NOT_FOUND. */
any_function *hook_driver_function(enum hook hook);

/* Returns what a program's call of it leads to: in a process whose memory is carried, the stub that
 * counts the call and holds it at the gate (call_stubs.h). */
any_function *hook_counted_function(enum hook hook);

/* HOOK_CALL(cuMemFree_v2)(at) calls the driver's for the program. */
#define HOOK_CALL(function) ((__typeof__(&(function)))hook_counted_function(HOOK_##function))

/* The same from within gate_enter and gate_leave, or by the carrier, which the gate lets pass. */
#define HOOK_INSIDE(function) ((__typeof__(&(function)))hook_driver_function(HOOK_##function))

/* Finds the driver's functions behind all hooks. Later that may take as long as another thread
 * loads a library. */
void hook_find_all(void);

/* Returns a function of the driver that has no hook, or NULL. */
any_function *driver_function(const char *name);

/* In a function's body: declares `call`, a function of the driver that has no hook, looked up once;
 * NULL: the driver has none. */
#define DRIVER(type, name)                                                                         \
    static _Atomic(any_function *) slot;                                                           \
    any_function *function = atomic_load_explicit(&slot, memory_order_relaxed);                    \
    if (!function && (function = driver_function(name)))                                           \
        atomic_store_explicit(&slot, function, memory_order_relaxed);                              \
    type *call = (type *)function

#endif
