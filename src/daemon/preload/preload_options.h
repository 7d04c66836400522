/* SPDX-License-Identifier: Apache-2.0 */
/* What the part preload is given when it is created. */
#ifndef COLLOC_DAEMON_PRELOAD_OPTIONS_H
#define COLLOC_DAEMON_PRELOAD_OPTIONS_H

#include <uv.h>

#include "core/core.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/gpus/gpus.h"
#include "daemon/jobs.h"

struct preload_manager_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct core *core;
    struct jobs *jobs;
    struct driver *driver;
    struct gpus *gpus;
};

#endif
