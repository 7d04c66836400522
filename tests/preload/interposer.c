/* SPDX-License-Identifier: Apache-2.0 */
/* A library of the user's in LD_PRELOAD: its getppid calls the next one, which it must find by
 * dlsym although libcolloc-preload.so has a dlsym, too. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

pid_t getppid(void)
{
    __typeof__(&getppid) next = (__typeof__(&getppid))(uintptr_t)dlsym(RTLD_NEXT, "getppid");
    if (!next || next == getppid)
        abort();
    return next();
}
