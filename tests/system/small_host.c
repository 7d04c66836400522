/* SPDX-License-Identifier: Apache-2.0 */
/* A host with little main memory: loaded before the C library, it answers with the number of pages
 * that COLLOC_TEST_HOST_MIB makes. What is free is the real host's. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

long sysconf(int name)
{
    static long (*next)(int);
    const char *mib = getenv("COLLOC_TEST_HOST_MIB");
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PHYS_PAGES && mib ? atol(mib) * (1L << 20) / next(_SC_PAGESIZE) : next(name);
}
