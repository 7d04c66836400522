/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers that share their wakeups. An idle daemon's processor time is mostly waking up, and work
 * that is due once a second by several timers would wake it several times. An aligned timer is due
 * at whole multiples of its period by the loop's clock, so that the loop wakes once for all:
 *
 *     poll of GPUs, each second     |         |         |
 *     disk, each second             |         |         |
 *     metrics, each two seconds     |                   |
 *
 * A late call does not delay the next.
 */
#ifndef COLLOC_SERVICE_ALIGNED_TIMER_H
#define COLLOC_SERVICE_ALIGNED_TIMER_H

#include <uv.h>

/* Returns the milliseconds from now until the next multiple of the period: 1 to `period_ms`. */
static inline uint64_t aligned_wait_ms(const uv_loop_t *loop, uint64_t period_ms)
{
    return period_ms - uv_now(loop) % period_ms;
}

/* Returns the wait until the last whole second of the loop's clock that comes within `wait_ms`, or
 * `wait_ms` where none does: for work that may be done early. */
static inline uint64_t aligned_earlier_ms(const uv_loop_t *loop, uint64_t wait_ms)
{
    uint64_t second_ms = aligned_wait_ms(loop, 1000);
    return wait_ms < second_ms ? wait_ms : wait_ms - (wait_ms - second_ms) % 1000;
}

/* Calls `on_time` once, at the next multiple of the period (above 0). For the next call the
 * callback starts the timer again. */
static inline void aligned_timer_start(uv_timer_t *timer, uv_timer_cb on_time, uint64_t period_ms)
{
    const uv_loop_t *loop = uv_handle_get_loop((const uv_handle_t *)timer);
    uv_timer_start(timer, on_time, aligned_wait_ms(loop, period_ms), 0);
}

#endif
