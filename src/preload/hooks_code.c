/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions that may load code into GPU memory, or that make a stream or an event: on
 * a full GPU they wait (driver_memory.h). */
#include <string.h>

#include "preload/driver_memory.h"
#include "preload/hook_table.h"
#include "preload/step_watch.h"

#define LOAD(CALL) DRIVER_MEMORY_CALL(CALL)

enum { OPTIONS_MAX = 64 }; /* the driver knows about 30 */

/* In a try the driver overwrites the values of some options of the compiler, such as the size of a
 * log: the next one gets those of the program. Others may be where nothing can be written. */
static void give_values(void **values, void *const *given, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (values[i] != given[i])
            values[i] = given[i];
}

#define LOAD_WITH(COUNT, VALUES, CALL)                                                             \
    do {                                                                                           \
        void *given[OPTIONS_MAX];                                                                  \
        if ((COUNT) == 0)                                                                          \
            LOAD(CALL);                                                                            \
        if (!(VALUES) || (COUNT) > OPTIONS_MAX)                                                    \
            return (CALL);                                                                         \
        memcpy(given, VALUES, (COUNT) * sizeof(*given));                                           \
        LOAD((give_values(VALUES, given, COUNT), CALL));                                           \
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
    LOAD_WITH(count, values, HOOK_CALL(cuModuleLoadDataEx)(module, image, count, options, values));
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
    LOAD_WITH(jit_count, jit_values,
        HOOK_CALL(cuLibraryLoadData)(
            library, image, jit_options, jit_values, jit_count, options, values, count));
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit_options,
    void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)
{
    LOAD_WITH(jit_count, jit_values,
        HOOK_CALL(cuLibraryLoadFromFile)(
            library, path, jit_options, jit_values, jit_count, options, values, count));
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

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
    shared_for_block *shared_bytes_of, size_t shared_bytes, int most)
{
    LOAD(HOOK_CALL(cuOccupancyMaxPotentialBlockSize)(
        grid, block, function, shared_bytes_of, shared_bytes, most));
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
    shared_for_block *shared_bytes_of, size_t shared_bytes, int most, unsigned flags)
{
    LOAD(HOOK_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags)(
        grid, block, function, shared_bytes_of, shared_bytes, most, flags));
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(
    size_t *shared_bytes, CUfunction function, int blocks, int threads)
{
    LOAD(HOOK_CALL(cuOccupancyAvailableDynamicSMemPerBlock)(
        shared_bytes, function, blocks, threads));
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function, const void *config)
{
    LOAD(HOOK_CALL(cuOccupancyMaxPotentialClusterSize)(size, function, config));
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const void *config)
{
    LOAD(HOOK_CALL(cuOccupancyMaxActiveClusters)(clusters, function, config));
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    LOAD(HOOK_CALL(cuStreamCreate)(stream, flags));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    LOAD(HOOK_CALL(cuStreamCreateWithPriority)(stream, flags, priority));
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    LOAD(HOOK_CALL(cuEventCreate)(event, flags));
}

/* A kernel may be launched for the first time after hours, as that of an evaluation. */
#define LAUNCH_HOOK(NAME, KERNEL, PARAMETERS, ARGUMENTS)                                           \
    CUresult NAME PARAMETERS                                                                       \
    {                                                                                              \
        step_watch(STEP_LAUNCH, (uint64_t)(uintptr_t)(KERNEL));                                    \
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
