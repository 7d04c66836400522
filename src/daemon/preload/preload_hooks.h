/* SPDX-License-Identifier: Apache-2.0 */
/* What the part preload is given when it is created: the hooks that it calls, and what it
 * borrows. */
#ifndef COLLOC_DAEMON_PRELOAD_HOOKS_H
#define COLLOC_DAEMON_PRELOAD_HOOKS_H

#include <uv.h>

#include "core/core.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/gpu_report.h"
#include "daemon/jobs.h"

/* What the part calls. All must be set; each gets `context`. */
struct preload_manager_hooks {
    void *context;

    gpu_report_hook *report_gpu;
};

struct preload_manager_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct core *core;
    struct jobs *jobs;
    struct driver *driver;
    struct preload_manager_hooks hooks;
};

#endif
