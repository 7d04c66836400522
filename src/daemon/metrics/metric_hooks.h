/* SPDX-License-Identifier: Apache-2.0 */
/* What the part metrics is given when it is created: the hooks that it calls, and where and for how
 * long it records. */
#ifndef COLLOC_DAEMON_METRICS_METRIC_HOOKS_H
#define COLLOC_DAEMON_METRICS_METRIC_HOOKS_H

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

/* A task whose processes are below `root`. */
struct metric_root {
    uint64_t task;
    pid_t root;
};

/* What the part calls, in the loop. All must be set; each gets `context`. */
struct metric_hooks {
    void *context;

    /* Lists the tasks that run now, into an array for the part to free. Returns how many. */
    size_t (*list_roots)(void *context, struct metric_root **ret_roots);

    /* A batch could not be stored; `what` says why. */
    void (*failed)(void *context, const char *what);
};

struct metric_options {
    uv_loop_t *loop;       /* borrowed */
    const char *path;      /* of the database; borrowed until metric_recorder_create returns */
    int64_t bytes_max;     /* of the database */
    int64_t keep_us;       /* the coarsest buckets are kept so long */
    int64_t batch_us;      /* time between two batches, which a crash may cost */
    int64_t idle_batch_us; /* the same while no task runs; under METRIC_BATCH_MS */
    struct metric_hooks hooks;
};

#endif
