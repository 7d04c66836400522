/* SPDX-License-Identifier: Apache-2.0 */
/* What the part suspension is given when it is created: the hooks that it calls, and what it
 * borrows. */
#ifndef COLLOC_DAEMON_SUSPENSION_SUSPENSION_HOOKS_H
#define COLLOC_DAEMON_SUSPENSION_SUSPENSION_HOOKS_H

#include <sys/types.h>
#include <uv.h>

#include "api/server.h"
#include "daemon/config.h"
#include "daemon/driver.h"

/* GPU memory of a process of a task. */
struct suspension_process {
    pid_t pid;
    const char *gpu; /* its UUID; valid during the call */
    struct reading bytes;
};

enum suspension_gate {
    SUSPENSION_GATE_CLEAR, /* no synchronizing call is in flight */
    SUSPENSION_GATE_BUSY,  /* one is */
    SUSPENSION_GATE_AWAY,  /* it has not connected to this daemon; it may run with the library */
    SUSPENSION_GATE_NONE,  /* the process runs without the preloaded library */
};

/* What the carrier of a process answers, the better first (preload_manager.h). */
enum suspension_carry {
    SUSPENSION_CARRY_DONE,
    SUSPENSION_CARRY_NOT,
    SUSPENSION_CARRY_FAILED,
    SUSPENSION_CARRY_LOST,
    SUSPENSION_CARRY_STILL,
};

/* Kinds of GPU memory that the driver cannot copy. */
struct suspension_memory_kinds {
    bool managed, ipc;
};

/* What the part calls. All must be set; each gets `context`. */
struct suspension_hooks {
    void *context;

    /* Polls the GPUs. Returns the poll's number, for suspension_polled; 0: there are none. */
    int64_t (*poll_gpus)(void *context);

    /* Lists the processes of the task that hold GPU memory, by the last poll. Returns how many. */
    size_t (*find_processes)(
        void *context, uint64_t task, struct suspension_process *ret_list, size_t capacity);

    /* Returns the pid of the task's shim; 0: it has none. */
    pid_t (*find_shim)(void *context, uint64_t task);

    /* Sends the task the signal of its --signal. Returns the time that it may take for it, in
     * microseconds; 0: it does not handle the signal. */
    int64_t (*warn_task)(void *context, uint64_t task);

    /* Writes the path of the attempt's cgroup. Returns false when it has none. */
    bool (*find_cgroup)(void *context, uint64_t task, char *path, size_t size);

    /* Closes or opens the gate that blocks synchronizing calls of a process of the task, or of all
     * of them (`pid` 0): the driver crashes a process whose first call after a suspension is such a
     * call. */
    enum suspension_gate (*set_gate)(void *context, uint64_t task, pid_t pid, bool is_closed);

    /* Returns which kinds of memory the process of the task has taken, as its preloaded library
     * reports; none where it runs without. */
    struct suspension_memory_kinds (*find_memory_kinds)(void *context, uint64_t task, pid_t pid);

    /* Has the carrier of a process take its memory off the GPU, or bring it back; called until it
     * answers. */
    enum suspension_carry (*carry)(void *context, uint64_t task, pid_t pid, bool is_away);

    /* Returns why that did not succeed. */
    const char *(*why_not_carried)(void *context, uint64_t task, pid_t pid);

    /* Answers a request with the task as it is now; or with 409 and `why`, if that is not NULL. */
    void (*answer)(void *context, struct api_request *request, uint64_t task, const char *why);
};

struct suspension_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct core *core;
    struct driver *driver;
    struct suspension_hooks hooks;
};

#endif
