/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of the user's in LD_PRELOAD that has a dlsym, as libraries have that stand before the
 * driver: it passes each question on to the next dlsym, which it finds by its version.
 *
 * Before libcolloc-preload.so the next one is colloc's, and behind it the C library's.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

void *dlsym(void *handle, const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    static __typeof__(&dlsym) next;
    for (size_t i = 0; i < sizeof versions / sizeof *versions && !next; i++)
        next = (__typeof__(&dlsym))(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!next)
        abort();
    return next(handle, name);
}
