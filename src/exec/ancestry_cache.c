/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers to which task a process belongs. A table of results by process id. Each entry has a
 * hash of the roots that it was looked up among: it does not answer for another set of roots.
 */
#include "exec/ancestry_cache.h"

#include "base/clock.h"
#include "base/hash.h"

static int index_of(pid_t root, const struct attempt_roots *roots)
{
    for (size_t i = 0; i < roots->count; i++)
        if (roots->shims[i] == root)
            return (int)i;
    return -1;
}

int ancestry_cache_find_root(
    struct ancestry_cache *cache, pid_t pid, const struct attempt_roots *roots, int64_t now_us)
{
    struct ancestry_entry *entry = &cache->entries[(unsigned)pid & (ANCESTRY_CACHE_ENTRIES - 1)];
    uint64_t hash = hash_bytes(HASH_START, roots->shims, roots->count * sizeof *roots->shims);
    if (entry->pid == pid && entry->roots == hash && now_us - entry->checked_us < SECOND_US)
        return index_of(entry->root, roots);
    int found = process_owner_find(pid, roots);
    *entry = (struct ancestry_entry){.pid = pid,
        .root = found < 0 ? 0 : roots->shims[found],
        .roots = hash,
        .checked_us = now_us};
    return found;
}
