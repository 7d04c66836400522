/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FNV-1a, 64 and 32 bits: a fast hash without a key, for fingerprints, caches and checksums against
 * accidents. Not for data that an attacker chooses to collide.
 *
 * It is incremental: start with HASH_START and feed each part into the result so far. The result
 * depends on the bytes and their order, not on where parts begin:
 *
 *     uint64_t hash = hash_text(HASH_START, task->name);
 *     hash = hash_bytes(hash, &task->batch, sizeof task->batch);
 *
 * A struct with padding is fed member by member. Source of the constants:
 * draft-eastlake-fnv (http://www.isthe.com/chongo/tech/comp/fnv/).
 */
#ifndef COLLOC_BASE_HASH_H
#define COLLOC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START   UINT64_C(0xcbf29ce484222325)
#define HASH32_START UINT32_C(0x811c9dc5)

/* The hash after `size` more bytes; `data` may be NULL when size is 0. */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The hash after a NUL-terminated text, without its NUL. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = hash_bytes(hash, text, 1);
    return hash;
}

/* The 32-bit variant, from HASH32_START: for file formats with 32-bit checksums. */
static inline uint32_t hash32_bytes(uint32_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT32_C(0x01000193);
    return hash;
}

#endif
