/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver is given when it is created: the hooks that it calls, and what it borrows. */
#ifndef COLLOC_DAEMON_DRIVER_OPTIONS_H
#define COLLOC_DAEMON_DRIVER_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "core/core.h"
#include "store/store.h"

/* What the driver calls. All must be set; each gets `context`. */
struct driver_hooks {
    void *context;

    /* Start the task on its GPUs, and feed STARTED, UNSTARTED or EXITED. */
    void (*start)(void *context, uint64_t task);

    /* End the task's processes; EXITED follows when they have ended. */
    void (*kill)(void *context, uint64_t task);

    /* Suspend the task, resume it on its GPUs, or move it to those of its task_yield; SUSPENDED,
     * RESUMED, MOVED or SUSPENSION_FAILED follows. */
    void (*suspend)(void *context, uint64_t task);
    void (*resume)(void *context, uint64_t task);
    void (*move)(void *context, uint64_t task);

    /* Take the copy of the suspended task from the neighbour GPU to the host, or, without one, its
     * context off its GPU; RELOCATED or SUSPENSION_FAILED follows. */
    void (*relocate)(void *context, uint64_t task);

    /* Freeze the task's processes, or let them continue. */
    void (*pause)(void *context, uint64_t task);
    void (*unpause)(void *context, uint64_t task);

    /* The allocation of the task that waits for GPU memory is tried again, or fails. */
    void (*answer_memory)(void *context, uint64_t task, bool is_granted);

    /* The core took an input, or refused it: `answer` is that of core_step. */
    void (*stepped)(void *context, const struct event *event, int answer);

    /* The event goes to the log; the core has applied it. `detail`: as of recorded. */
    void (*decided)(void *context, const struct event *event, const json_t *detail);

    /* The record of a task that ends, as the log keeps it. Returns it for the driver to release;
     * NULL when memory is out. */
    json_t *(*record_end)(void *context, const struct task *task);

    /* The event is durable. `detail`: what the log has beside it, borrowed, may be NULL. */
    void (*recorded)(void *context, const struct event *event, const json_t *detail);

    /* The task's END is durable; the core forgets the task when this returns. `record`:
     * borrowed. */
    void (*ended)(void *context, uint64_t task, const json_t *record);

    /* A second after driver_try_again, when the log can be written. */
    void (*retry)(void *context);
};

struct driver_options {
    uv_loop_t *loop;
    struct core *core; /* borrowed, as the others; all outlive the driver */
    struct store *store;
    const char *state_dir;   /* for messages */
    int64_t clock_offset_us; /* core time = time since boot + this (daemon/time_base.h) */
    int64_t last_us;         /* core time of the log's last event; 0: none */
    struct driver_hooks hooks;
};

#endif
