/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k best of a stream of candidates, best first, by bounded insertion: for small k, such as the
 * GPUs of one task, where sorting all candidates would cost more.
 *
 *     int best[4];
 *     size_t n = 0;
 *     for (int i = 0; i < n_gpus; i++)
 *         n = top_k_insert(best, n, 4, sizeof best[0], &i, has_more_free, gpus);
 *
 * Stable: of candidates that compare equal, the earlier one stays before the later one, and the
 * later one is dropped first.
 */
#ifndef COLLOC_BASE_TOP_K_H
#define COLLOC_BASE_TOP_K_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Must item `a` stand before item `b`? False when they are equal. `context` is the caller's. */
typedef bool top_k_before(const void *a, const void *b, const void *context);

/*
 * Puts a candidate at its place among the best; what falls off the end is forgotten.
 *
 * items:     `count` items in order, in memory for `limit`
 * limit:     k; with 0 nothing is kept
 * item_size: bytes of an item
 * candidate: copied when it is among the best; must not point into `items`
 *
 * Returns the new count: at most limit.
 */
static inline size_t top_k_insert(void *items, size_t count, size_t limit, size_t item_size,
    const void *candidate, top_k_before *is_before, const void *context)
{
    char *bytes = (char *)items;
    size_t at = count;
    while (at > 0 && is_before(candidate, bytes + (at - 1) * item_size, context))
        at--;
    if (at == limit)
        return count;
    size_t kept = count < limit ? count : limit - 1;
    if (kept > at) /* mostly nothing has to give way */
        memmove(bytes + (at + 1) * item_size, bytes + at * item_size, (kept - at) * item_size);
    memcpy(bytes + at * item_size, candidate, item_size);
    return kept + 1;
}

#endif
