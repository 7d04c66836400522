/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part share. */
#ifndef COLLOC_DAEMON_PRELOAD_STATE_H
#define COLLOC_DAEMON_PRELOAD_STATE_H

#include "daemon/preload/preload_options.h"
#include "daemon/rooms/room_pool.h"
#include "preload/exact_peak.h"
#include "preload/preload_listener.h"
#include "preload/step_rate.h"

struct preload_manager {
    struct preload_manager_options parts;
    struct room_pool *rooms;
    struct preload_listener *listener; /* NULL: tasks run without the library */
    char socket[sizeof(((struct config *)0)->socket_path) + 16];
    uint64_t opened_ms;   /* in the loop's time */
    bool has_ended_waits; /* waits that threads had begun before this daemon, and ended meanwhile */
    uint64_t refusal_logged_ms; /* in the loop's time; 0: never */
    uv_timer_t probe_timer;     /* while there is a probe */
    bool has_logged; /* since the last poll: a line that a program could cause at any rate */
};

/* A process, beside its page. */
struct known_process {
    struct exact_peak peaks[PRELOAD_DEVICES_MAX];
    int64_t called_us;  /* when it was last seen to call CUDA; 0: never */
    bool is_incomplete; /* it has memory that it could not count */
    struct step_rate rate;
};

/* ---- process_facts.c ---- */

/* Returns the process of the task; NULL: it is not connected. */
struct preload_process *process_facts_find(
    const struct preload_manager *manager, uint64_t task, struct process_id id);

/* ---- counted_peaks.c ---- */

/* The GPUs were polled: the peaks of all tasks with processes are raised. */
void counted_peaks_note_all(struct preload_manager *manager);

/* A process of the task ends; it is still connected. */
void counted_peaks_note_end(struct preload_manager *manager, uint64_t task);

/* ---- process_calls.c ---- */

/* Notes whether the process has called CUDA since the last poll. */
void process_calls_note(struct preload_process *process);

/* A task that was suspended because it did not use its GPUs is resumed when it calls CUDA. */
void process_calls_wake(struct preload_manager *manager, const struct preload_process *process);

/* ---- task_steps.c ---- */

/* The GPUs were polled: the speed of each task with a process is noted. */
void task_steps_note_all(struct preload_manager *manager);

/* A process has ended; its page is read for the last time. */
void task_steps_note_end(struct preload_manager *manager, struct preload_process *process);

/* ---- promised_speed.c ---- */

/* Measures the speeds of tasks alone, and reports to the core how slow promised ones are. Returns
 * whether one is still in a probe (core/probe.h). */
bool promised_speed_note_all(struct preload_manager *manager);

/* ---- carry_orders.c ---- */

/* Brings the memory of a process back whose task runs. `task`: of the process, or NULL. */
void carry_orders_heal(struct preload_process *process, const struct task *task);

/* ---- memory_waits.c ---- */

/* A thread waits, or waits again because its try failed. It is reported at the next poll. */
void memory_waits_add(struct preload_manager *manager, struct preload_waiter *waiter);

/* A thread does not wait any more. */
void memory_waits_remove(struct preload_manager *manager, struct preload_waiter *waiter);

/* The GPUs were polled: enforces time limits, and reports new waits to the core. */
void memory_waits_poll(struct preload_manager *manager);

#endif
