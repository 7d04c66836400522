/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a process is, remembered for a moment: who asks ten times a second must not read /proc each
 * time. */
#ifndef COLLOC_EXEC_ANCESTRY_CACHE_H
#define COLLOC_EXEC_ANCESTRY_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ANCESTRY_CACHE_ENTRIES = 256 }; /* a power of two */

/* Start with {0}. */
struct ancestry_cache {
    struct ancestry_entry {
        pid_t pid, root; /* root 0: of none of the roots */
        uint64_t roots;  /* which those were */
        int64_t asked_us;
    } entries[ANCESTRY_CACHE_ENTRIES];
};

/* As tree_find_root; an answer to the same question is good for a second (monotonic clock). */
int ancestry_cache_find_root(
    struct ancestry_cache *cache, pid_t pid, const pid_t *roots, size_t count, int64_t now_us);

#endif
