/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the bytes that the program holds. Its malloc, calloc, realloc and free replace glibc's,
 * call them, and add up the usable sizes of the blocks.
 */
#include "heap.h"

#include <malloc.h>
#include <stdlib.h>

/* glibc's own, beneath the ones that this program puts in their place. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *old);

static long long held, most;

static void *count(void *got)
{
    held += (long long)malloc_usable_size(got);
    most = held > most ? held : most;
    return got;
}

void *malloc(size_t size)
{
    return count(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return count(__libc_calloc(n, size));
}

/* Old and new side by side, as they are while one is copied. */
void *realloc(void *old, size_t size)
{
    long long before = (long long)malloc_usable_size(old);
    void *got = __libc_realloc(old, size);
    if (got || size == 0) {
        count(got);
        held -= before;
    }
    return got;
}

void free(void *old)
{
    held -= (long long)malloc_usable_size(old);
    __libc_free(old);
}

void heap_forget(void)
{
    held = most = 0;
}

size_t heap_most(void)
{
    return (size_t)most;
}
