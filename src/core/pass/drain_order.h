/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which GPUs are drained for a recovering task: the one that is free first, first. */
#ifndef COLLOC_CORE_PASS_DRAIN_ORDER_H
#define COLLOC_CORE_PASS_DRAIN_ORDER_H

#include "core/state/state.h"

/* Residents that keep the GPU from being idle. */
static inline int drain_count_users(const struct gpu_view *gpu, int64_t now_us)
{
    int n = 0;
    for (int i = 0; i < gpu->n_residents; i++)
        n += !resident_is_unused(&gpu->residents[i], now_us);
    return n;
}

static inline bool drain_has_users(const struct gpu_view *gpu, int64_t now_us)
{
    for (int i = 0; i < gpu->n_residents; i++)
        if (!resident_is_unused(&gpu->residents[i], now_us))
            return true;
    return false;
}

/*
 * Sets what is expected of each of the `n` GPUs.
 *
 * wanted_bytes: free on the GPU, for a task that may be beside others; 0: all of them have to leave
 */
void drain_expect(const struct gpu_view *gpus, int n, double wanted_bytes, int64_t now_us,
    struct drain_outlook *ret_outlooks);

struct drain_order {
    const struct gpu_view *gpus;
    const struct drain_outlook *outlooks;
    bool prefers_drained; /* GPUs that are drained already come first */
};

/* Negative: GPU `a` is free sooner than `b`; 0: nothing says which. */
static inline int drain_compare_free(const struct drain_order *order, int a, int b)
{
    const struct drain_outlook *one = &order->outlooks[a], *other = &order->outlooks[b];
    if (one->free_us != other->free_us)
        return one->free_us < other->free_us ? -1 : 1;
    return one->n_users - other->n_users;
}

/* Is GPU `a` drained before `b`? A choice asks it of each GPU: inlined. */
static inline bool drain_comes_before(const struct drain_order *order, int a, int b)
{
    const struct gpu_view *one = &order->gpus[a], *other = &order->gpus[b];
    if (order->prefers_drained && !one->claims[CLAIM_DRAIN] != !other->claims[CLAIM_DRAIN])
        return one->claims[CLAIM_DRAIN];
    int compared = drain_compare_free(order, a, b);
    if (compared != 0)
        return compared < 0;
    return reading_assume(one->mem_used_bytes, 1e18) < reading_assume(other->mem_used_bytes, 1e18);
}

/* For top_k_insert: `a` and `b` are indices of GPUs (int), `context` is a drain_order. */
bool drain_is_sooner(const void *a, const void *b, const void *context);

#endif
