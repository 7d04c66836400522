/* SPDX-License-Identifier: Apache-2.0 */
/* The owners of processes, cached for a second: a sampler needs them up to ten times a second, and
 * must not read /proc each time. */
#ifndef COLLOC_EXEC_ANCESTRY_CACHE_H
#define COLLOC_EXEC_ANCESTRY_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/process_owner.h"

enum { ANCESTRY_CACHE_ENTRIES = 256 }; /* a power of two */

/* Start with {0}. */
struct ancestry_cache {
    struct ancestry_entry {
        pid_t pid, root; /* root 0: it belongs to none of the attempts */
        uint64_t roots;  /* a hash of the roots of that look-up */
        int64_t checked_us;
    } entries[ANCESTRY_CACHE_ENTRIES];
};

/*
 * Does what process_owner_find does, with the result of a call less than a second ago if there is
 * one.
 *
 * roots:  not kept.
 * now_us: monotonic.
 *
 * Returns an index, or -1: `pid` belongs to none of the attempts, or is gone.
 */
int ancestry_cache_find_root(
    struct ancestry_cache *cache, pid_t pid, const struct attempt_roots *roots, int64_t now_us);

#endif
