/* SPDX-License-Identifier: Apache-2.0 */
/* What the part attempts is given when it is created. */
#ifndef COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_OPTIONS_H
#define COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_OPTIONS_H

#include <uv.h>

#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/gpus/gpus.h"
#include "daemon/jobs.h"
#include "daemon/mps/mps_manager.h"
#include "daemon/preload/preload_manager.h"
#include "store/store.h"

/* All is borrowed and outlives the part. */
struct attempts_options {
    uv_loop_t *loop;
    const struct config *config;
    const struct core *core;
    struct jobs *jobs;
    struct store *store;
    struct driver *driver;
    struct gpus *gpus;
    struct mps *mps;
    struct preload_manager *preload;
    int64_t open_files; /* a task's soft limit on open files */
};

#endif
