/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose constructor calls CUDA, as some that frameworks load while they train. */
#include <dlfcn.h>
#include <stddef.h>

__attribute__((constructor)) static void begin(void)
{
    int (*synchronize)(void) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver)
        *(void **)&synchronize = dlsym(driver, "cuCtxSynchronize");
    if (synchronize)
        synchronize();
}
