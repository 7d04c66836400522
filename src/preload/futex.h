/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a word of memory, and a lock made of one, without a threading library. */
#ifndef COLLOC_PRELOAD_FUTEX_H
#define COLLOC_PRELOAD_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Waits until `*word` is no longer `value`, another process wakes the waiters, a signal comes, or
 * `ms` have passed. The word may be shared between processes. Returns whether the time is over. */
static inline bool futex_wait(_Atomic uint32_t *word, uint32_t value, int ms)
{
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0) < 0 && errno == ETIMEDOUT;
}

static inline void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* A lock: 0 free, 1 held, 2 held and others wait. */
static inline void futex_lock(_Atomic uint32_t *lock)
{
    uint32_t free = 0;
    if (atomic_compare_exchange_strong_explicit(
            lock, &free, 1, memory_order_acquire, memory_order_relaxed))
        return;
    while (atomic_exchange_explicit(lock, 2, memory_order_acquire) != 0)
        futex_wait(lock, 2, 1000);
}

static inline void futex_unlock(_Atomic uint32_t *lock)
{
    if (atomic_exchange_explicit(lock, 0, memory_order_release) == 2)
        futex_wake_all(lock);
}

#endif
