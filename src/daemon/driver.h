/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver: the core, its clock and its event log, and what happens between them.
 *
 * Parts of the daemon post events here (driver_feed). The driver knows no part: it reaches them by
 * the hooks that wiring.c sets.
 *
 * Contract:
 * 1. An event and the decisions that follow are durable before `start` is called for one of them.
 * 2. `kill` may come before its CANCEL or EXPIRE is durable, when the log cannot be written.
 * 3. A hook may call driver_feed; effects that follow are carried out after the hook has returned.
 * 4. `start` is called in slices of some milliseconds, one in each turn of the loop: other events
 *    may come between a START and its call. The other hooks are called before driver_feed returns.
 */
#ifndef COLLOC_DAEMON_DRIVER_H
#define COLLOC_DAEMON_DRIVER_H

#include "daemon/driver_options.h"

struct driver;

/* Creates a driver; `options` is copied. Returns NULL when memory is out. */
struct driver *driver_create(const struct driver_options *options);

/* Ends the timers: nothing is retried or started by time any more. NULL is fine. */
void driver_close(struct driver *driver);

/* Releases the driver once the loop has run after driver_close, and logs each event that could not
 * be written. NULL is fine. */
void driver_destroy(struct driver *driver);

/* Ends the process: a driver that cannot keep its log in memory must not decide any more. */
_Noreturn void driver_die_of_memory(void);

/* Returns the core's time now, in microseconds; never less than before. */
int64_t driver_now_us(struct driver *driver);

/* Converts a time of the core to wall time, by the present difference between the two clocks. */
int64_t driver_wall_us(struct driver *driver, int64_t time_us);

/* Converts a time of the core to clock_monotonic_us. */
int64_t driver_monotonic_us(const struct driver *driver, int64_t time_us);

/* Makes an event of now, of this task (0: of none). */
struct event driver_event(struct driver *driver, enum event_kind kind, uint64_t task);

/*
 * Feeds an input to the core, writes it and the decisions that follow to the log, and carries those
 * out. Samples, latencies and ticks are not written.
 *
 * detail: what the log stores beside the event; borrowed, may be NULL
 *
 * Returns as core_step does, except for -ENOMEM, which ends the process.
 */
int driver_feed(struct driver *driver, const struct event *event, const json_t *detail);

/* The same for an input that is in the log already, or that is not written. */
int driver_feed_logged(struct driver *driver, const struct event *event);

/* Between the two, events are fed without being written; the end of the batch writes all of them
 * together, and carries out what follows. */
void driver_begin_batch(struct driver *driver);
void driver_end_batch(struct driver *driver);

/* Calls the hook `start` for a task in one of the next turns of the loop: for a start that was
 * deferred, or an attempt whose state has to be read again, also while the log cannot be written.
 * Does nothing if that is queued. */
void driver_queue_start(struct driver *driver, uint64_t task);

/* Tries again in a second to write what could not be written; then the hook `retry` is called. */
void driver_try_again(struct driver *driver);

/* Returns whether the last write to the log failed: nothing new is accepted. */
bool driver_log_is_broken(const struct driver *driver);

/* Returns whether the log's reserve on disk is in use or missing: nothing new is accepted. */
bool driver_reserve_is_in_use(const struct driver *driver);
void driver_set_reserve_in_use(struct driver *driver, bool in_use);

#endif
