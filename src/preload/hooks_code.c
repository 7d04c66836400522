/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's functions that may load code into GPU memory. By default a kernel is loaded when it
 * is first asked for or launched, so on a full GPU these functions fail long after the context was
 * made: cuDNN then reports CUDNN_STATUS_INTERNAL_ERROR (seen on driver 580). Each waits for memory
 * like an allocation (memory_wait.h). A call that failed for want of memory has done nothing, so it
 * can be made again.
 */
#include "preload/allocation.h"
#include "preload/call_stubs.h"
#include "preload/hook_table.h"
#include "preload/step_watch.h"

/* Most kernels are first launched in a program's first steps. After this number of launches only
 * steps are counted: waiting for memory makes each of them 10 ns longer, about 1 ms in all. */
#define LAUNCHES_WATCHED 100000

/* The code of one library: cuDNN's largest takes about as much on an H100. */
#define CODE_BYTES (UINT64_C(256) << 20)

/* `wait` is filled in if the library takes part in the failure `r`. */
static bool is_failure_that_waits(CUresult r, struct memory_wait *wait)
{
    if (r != CUDA_ERROR_OUT_OF_MEMORY ||
        !allocation_begin(wait, FAILURE_FINAL, CODE_BYTES, allocation_current_device(), NULL))
        return false;
    wait->reason = PRELOAD_NEEDS_CONTEXT;
    return true;
}

#define LOAD(CALL)                                                                                 \
    do {                                                                                           \
        struct memory_wait wait;                                                                   \
        CUresult r = (CALL);                                                                       \
        if (!is_failure_that_waits(r, &wait))                                                      \
            return r;                                                                              \
        if (memory_wait_after_failure(&wait))                                                      \
            MEMORY_WAIT_TRY(r, &wait, CALL);                                                       \
        memory_wait_end(&wait, r == CUDA_SUCCESS);                                                 \
        return r;                                                                                  \
    } while (0)

/* In its first try the driver overwrites some options of the compiler, such as the size of a log: a
 * call with options is made once. */
#define LOAD_ONCE_WITH(COUNT, CALL)                                                                \
    do {                                                                                           \
        if (COUNT)                                                                                 \
            return (CALL);                                                                         \
        LOAD(CALL);                                                                                \
    } while (0)

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    LOAD(HOOK_CALL(cuModuleLoad)(module, path));
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    LOAD(HOOK_CALL(cuModuleLoadData)(module, image));
}

CUresult cuModuleLoadDataEx(
    CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    LOAD_ONCE_WITH(count, HOOK_CALL(cuModuleLoadDataEx)(module, image, count, options, values));
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    LOAD(HOOK_CALL(cuModuleLoadFatBinary)(module, image));
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    LOAD(HOOK_CALL(cuModuleGetFunction)(function, module, name));
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
    LOAD(HOOK_CALL(cuModuleGetGlobal_v2)(at, bytes, module, name));
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
    void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)
{
    LOAD_ONCE_WITH(jit_count, HOOK_CALL(cuLibraryLoadData)(library, image, jit_options, jit_values,
                                  jit_count, options, values, count));
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    LOAD(HOOK_CALL(cuLibraryGetModule)(module, library));
}

CUresult cuLibraryGetGlobal(CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name)
{
    LOAD(HOOK_CALL(cuLibraryGetGlobal)(at, bytes, library, name));
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    LOAD(HOOK_CALL(cuKernelGetFunction)(function, kernel));
}

CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device)
{
    LOAD(HOOK_CALL(cuKernelGetAttribute)(value, attribute, kernel, device));
}

CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device)
{
    LOAD(HOOK_CALL(cuKernelSetAttribute)(attribute, value, kernel, device));
}

CUresult cuFuncLoad(CUfunction function)
{
    LOAD(HOOK_CALL(cuFuncLoad)(function));
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    LOAD(HOOK_CALL(cuFuncGetAttribute)(value, attribute, function));
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    LOAD(HOOK_CALL(cuFuncSetAttribute)(function, attribute, value));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int threads, size_t shared_bytes)
{
    LOAD(HOOK_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor)(
        blocks, function, threads, shared_bytes));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, CUfunction function, int threads, size_t shared_bytes, unsigned flags)
{
    LOAD(HOOK_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(
        blocks, function, threads, shared_bytes, flags));
}

static void count_launch(enum hook hook, any_function *light)
{
    static _Atomic unsigned counts[HOOK_COUNT];
    unsigned n = atomic_load_explicit(&counts[hook], memory_order_relaxed);
    if (n > LAUNCHES_WATCHED)
        return;
    atomic_store_explicit(&counts[hook], n + 1, memory_order_relaxed); /* threads may lose some */
    if (n == LAUNCHES_WATCHED)
        call_stubs_replace(hook_function(hook), light);
}

/*
 * A launch, and what its stub leads to once the kernels are loaded: the same without waiting for
 * memory. The compiler makes its call a jump, with the arguments where they are.
 */
#define LAUNCH_HOOK(NAME, KERNEL, PARAMETERS, ARGUMENTS)                                           \
    static CUresult light_##NAME PARAMETERS                                                        \
    {                                                                                              \
        step_watch(STEP_LAUNCH, (uint64_t)(uintptr_t)(KERNEL));                                    \
        return HOOK_CALL(NAME) ARGUMENTS;                                                          \
    }                                                                                              \
    CUresult NAME PARAMETERS                                                                       \
    {                                                                                              \
        step_watch(STEP_LAUNCH, (uint64_t)(uintptr_t)(KERNEL));                                    \
        count_launch(HOOK_##NAME, (any_function *)light_##NAME);                                   \
        LOAD(HOOK_CALL(NAME) ARGUMENTS);                                                           \
    }

#define LAUNCH_HOOKS(SUFFIX)                                                                       \
    LAUNCH_HOOK(cuLaunchKernel##SUFFIX, function,                                                  \
        (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
            unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,            \
            void **parameters, void **extra),                                                      \
        (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,        \
            parameters, extra))                                                                    \
    LAUNCH_HOOK(cuLaunchKernelEx##SUFFIX, function,                                                \
        (const void *config, CUfunction function, void **parameters, void **extra),                \
        (config, function, parameters, extra))                                                     \
    LAUNCH_HOOK(cuLaunchCooperativeKernel##SUFFIX, function,                                       \
        (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
            unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,            \
            void **parameters),                                                                    \
        (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,        \
            parameters))

LAUNCH_HOOKS()
LAUNCH_HOOKS(_ptsz)
