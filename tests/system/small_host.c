/* SPDX-License-Identifier: Apache-2.0 */
/* A host with other main memory: loaded before the C library, it answers with the number of pages
 * that COLLOC_TEST_HOST_MIB makes, and reads the file COLLOC_TEST_MEMINFO, if that is set, in place
 * of /proc/meminfo. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long sysconf(int name)
{
    static long (*next)(int);
    const char *mib = getenv("COLLOC_TEST_HOST_MIB");
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PHYS_PAGES && mib ? atol(mib) * (1L << 20) / next(_SC_PAGESIZE) : next(name);
}

/* As files with 64-bit offsets name it, which all programs of colloc have. */
int open64(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    const char *meminfo = getenv("COLLOC_TEST_MEMINFO");
    va_list list;
    va_start(list, flags);
    unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, unsigned) : 0;
    va_end(list);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "open64");
    return next(meminfo && strcmp(path, "/proc/meminfo") == 0 ? meminfo : path, flags, mode);
}
