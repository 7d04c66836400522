/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS, as far as the preloaded library can see it: it takes memory of the driver itself. */
#include <dlfcn.h>
#include <stdint.h>

#include "preload/driver_abi.h"

int take_workspace(size_t bytes);
int take_workspace(size_t bytes)
{
    CUresult (*alloc)(CUdeviceptr *, size_t) = (__typeof__(alloc))(uintptr_t)dlsym(
        dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
    CUdeviceptr at;
    CUresult r = alloc ? alloc(&at, bytes) : -1;
    return r; /* not a jump: the driver's caller is this function */
}
