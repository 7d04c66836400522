/* SPDX-License-Identifier: Apache-2.0 */
/* Process ancestry, cached for a second: a sampler needs it up to ten times a second, and must not
 * read /proc each time. */
#ifndef COLLOC_EXEC_ANCESTRY_CACHE_H
#define COLLOC_EXEC_ANCESTRY_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ANCESTRY_CACHE_ENTRIES = 256 }; /* a power of two */

/* Start with {0}. */
struct ancestry_cache {
    struct ancestry_entry {
        pid_t pid, root; /* root 0: it descends from none of the roots */
        uint64_t roots;  /* a hash of the roots of that look-up */
        int64_t checked_us;
    } entries[ANCESTRY_CACHE_ENTRIES];
};

/*
 * Does what tree_find_root does, with the result of a call less than a second ago if there is one.
 *
 * roots:  `count` process ids.
 * now_us: monotonic.
 *
 * Returns an index of `roots`, or -1: `pid` descends from none of them, or is gone.
 */
int ancestry_cache_find_root(
    struct ancestry_cache *cache, pid_t pid, const pid_t *roots, size_t count, int64_t now_us);

#endif
