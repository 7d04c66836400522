/* SPDX-License-Identifier: Apache-2.0 */
/* What the part metrics is given when it is created. */
#ifndef COLLOC_DAEMON_METRICS_METRIC_OPTIONS_H
#define COLLOC_DAEMON_METRICS_METRIC_OPTIONS_H

#include <stdint.h>
#include <uv.h>

#include "daemon/attempts/attempts.h"
#include "daemon/disk.h"
#include "daemon/jobs.h"

struct metric_options {
    uv_loop_t *loop;         /* borrowed */
    const char *path;        /* of the database; borrowed until metric_recorder_create returns */
    int64_t bytes_max;       /* of the database */
    int64_t keep_us;         /* the coarsest buckets are kept so long */
    int64_t batch_us;        /* time between two batches, which a crash may cost */
    int64_t idle_batch_us;   /* the same while no task runs; under METRIC_BATCH_MS */
    const struct core *core; /* borrowed, as the next three; all outlive the part */
    struct attempts *attempts;
    const struct jobs *jobs;
    struct disk *disk;
};

#endif
