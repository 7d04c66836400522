/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libopenblas.so.0 and finds its functions. */
#include "memnet/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ISO C has no conversion from a data pointer to a function pointer: hence memcpy. */
static void find_symbol(void *library, const char *name, void *ret_function)
{
    void *address = dlsym(library, name);
    memcpy(ret_function, &address, sizeof address);
}

int blas_open(struct fault *fault, struct blas *ret_blas)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    *ret_blas = (struct blas){.library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)};
    if (!ret_blas->library)
        return fault_set(
            fault, ENOENT, "training needs OpenBLAS (Debian's libopenblas0): %s", dlerror());
    find_symbol(ret_blas->library, "cblas_sgemm", &ret_blas->sgemm);
    find_symbol(ret_blas->library, "cblas_sdot", &ret_blas->sdot);
    if (ret_blas->sgemm && ret_blas->sdot)
        return 0;
    blas_close(ret_blas);
    return fault_set(
        fault, ENOENT, "training needs OpenBLAS; the library that was found has no cblas_sgemm");
}

void blas_close(struct blas *blas)
{
    if (blas->library)
        dlclose(blas->library);
    *blas = (struct blas){0};
}
