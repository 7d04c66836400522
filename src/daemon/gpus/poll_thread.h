/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that calls NVML, in numbered steps, one for each GPU. A call may hang in the driver for
 * minutes, or for ever; no thread can be stopped in there. So the loop watches how long the present
 * step has lasted, and abandons the thread when that is too long: the loop starts another thread
 * for the other GPUs, and the abandoned one ends when its call returns.
 *
 * Contract:
 * 1. `work` runs in the thread. It calls poll_thread_begin before each step and returns at once
 *    when that returns false.
 * 2. What a step writes belongs to the thread until that step has ended, also when the thread was
 *    abandoned.
 * 3. All functions but poll_thread_begin are for the loop.
 */
#ifndef COLLOC_DAEMON_GPUS_POLL_THREAD_H
#define COLLOC_DAEMON_GPUS_POLL_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct poll_thread;
typedef void poll_thread_work(struct poll_thread *thread, void *context);

/* Starts a thread. `on_done`: is sent when `work` has returned, unless the thread was abandoned
 * before; borrowed; NULL: nothing is. Returns NULL when memory is out. */
struct poll_thread *poll_thread_start(poll_thread_work *work, void *context, uv_async_t *on_done);

/* The next step begins. Returns false: the thread was abandoned. */
bool poll_thread_begin(struct poll_thread *thread, size_t step);

/* Returns whether `work` has returned. */
bool poll_thread_is_done(struct poll_thread *thread);

/* Returns for how long the present step has lasted, in microseconds. */
int64_t poll_thread_step_us(struct poll_thread *thread, size_t *ret_step);

/* Waits until `work` has returned, at most `ms` milliseconds. Returns whether it has. */
bool poll_thread_wait(struct poll_thread *thread, int64_t ms);

/* Returns whether the thread was abandoned: false when `work` has returned. */
bool poll_thread_abandon(struct poll_thread *thread);

/* Releases a thread whose `work` has returned. NULL is fine. */
void poll_thread_free(struct poll_thread *thread);

#endif
