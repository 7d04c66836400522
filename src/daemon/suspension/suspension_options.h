/* SPDX-License-Identifier: Apache-2.0 */
/* What the part suspension is given when it is created: its hook, and what it borrows. */
#ifndef COLLOC_DAEMON_SUSPENSION_SUSPENSION_OPTIONS_H
#define COLLOC_DAEMON_SUSPENSION_SUSPENSION_OPTIONS_H

#include <uv.h>

#include "api/request.h"
#include "daemon/attempts/attempts.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/gpus/gpus.h"
#include "daemon/preload/preload_manager.h"

/* What the part calls up. It must be set. */
struct suspension_hooks {
    void *context;

    /* Answers a request with the task as it is now; or with 409 and `why`, if that is not NULL. */
    void (*answer)(void *context, struct api_request *request, uint64_t task, const char *why);
};

struct suspension_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct core *core;
    struct driver *driver;
    struct attempts *attempts;
    struct gpus *gpus;
    struct preload_manager *preload;
    struct suspension_hooks hooks;
};

#endif
