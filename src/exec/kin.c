/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/kin.h"

#include "base/clock.h"
#include "exec/tree.h"

/* FNV-1a. */
static uint64_t hash_of(const pid_t *roots, size_t count)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (uint64_t)roots[i]) * 1099511628211u;
    return hash;
}

static int index_of(pid_t root, const pid_t *roots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (roots[i] == root)
            return (int)i;
    return -1;
}

int kin_find_root(struct kin *kin, pid_t pid, const pid_t *roots, size_t count, int64_t now_us)
{
    struct kin_entry *entry = &kin->entries[(unsigned)pid & (KIN_ENTRIES - 1)];
    uint64_t hash = hash_of(roots, count);
    if (entry->pid == pid && entry->roots == hash && now_us - entry->asked_us < SECOND_US)
        return index_of(entry->root, roots, count);
    int found = tree_find_root(pid, roots, count);
    *entry = (struct kin_entry){
        .pid = pid, .root = found < 0 ? 0 : roots[found], .roots = hash, .asked_us = now_us};
    return found;
}
