/* SPDX-License-Identifier: Apache-2.0 */
/* What the part gpus is given when it is created: the hooks that it calls, and what it borrows. */
#ifndef COLLOC_DAEMON_GPUS_GPUS_OPTIONS_H
#define COLLOC_DAEMON_GPUS_GPUS_OPTIONS_H

#include <sys/types.h>
#include <uv.h>

#include "daemon/config.h"
#include "daemon/disk.h"
#include "daemon/driver.h"
#include "daemon/jobs.h"
#include "gpu/gpu.h"

/* What the part calls up. All must be set; each gets `context`. */
struct gpus_hooks {
    void *context;

    /* Returns the pid of the task's shim; 0: it has none. */
    pid_t (*find_shim)(void *context, uint64_t task);

    /* Returns the home of the tasks' cgroups as /proc/PID/cgroup names it; NULL: they have none. */
    const char *(*cgroup_home)(void *context);

    /* How long the task's process has not called CUDA, in microseconds. Not valid: not known. */
    struct reading (*calls_idle_us)(void *context, uint64_t task, struct process_id id);

    /* Has the task's process the preloaded library? */
    bool (*is_hooked)(void *context, uint64_t task, struct process_id id);

    /* Can the carrier take the memory of the task's process away? */
    bool (*can_carry)(void *context, uint64_t task, struct process_id id);

    /* The poll of this number is complete. */
    void (*polled)(void *context, int64_t poll);

    /* A managed GPU (`view`: its index in the core's view) has failed or is well again: "lost",
     * "faulty" or "ok"; `why` is for people. */
    void (*health_changed)(
        void *context, int view, const struct gpu_info *info, const char *health, const char *why);
};

struct gpus_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct core *core;
    struct jobs *jobs;
    struct driver *driver;
    struct disk *disk;
    struct gpus_hooks hooks;
};

#endif
