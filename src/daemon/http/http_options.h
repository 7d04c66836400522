/* SPDX-License-Identifier: Apache-2.0 */
/* What the part http is given when it is created: the hooks that it calls, and what it borrows. */
#ifndef COLLOC_DAEMON_HTTP_HTTP_OPTIONS_H
#define COLLOC_DAEMON_HTTP_HTTP_OPTIONS_H

#include <uv.h>

#include "api/request.h"
#include "daemon/attempts/attempts.h"
#include "daemon/config.h"
#include "daemon/disk.h"
#include "daemon/driver.h"
#include "daemon/gpus/gpus.h"
#include "daemon/jobs.h"
#include "daemon/kernels/kernel_asker.h"
#include "daemon/metrics/metric_recorder.h"
#include "daemon/mps/mps_manager.h"
#include "daemon/preload/preload_manager.h"
#include "daemon/run_history.h"
#include "daemon/suspension/suspension.h"
#include "service/user_names.h"
#include "store/store.h"

/* What the part calls up. All must be set; each gets `context`. */
struct http_hooks {
    void *context;

    /* Requests were answered, perhaps also those of another server with these routes. */
    void (*served)(void *context);

    /* Makes the address of a login to the web page; web_make_login of service/web_server.h. */
    int (*make_login)(
        void *context, const struct api_peer *peer, struct fault *fault, char **ret_url);
};

struct http_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct core *core;
    struct jobs *jobs;
    struct names *names;
    struct store *store;
    struct driver *driver;
    const struct run_history *run_history;
    struct attempts *attempts;
    struct disk *disk;
    struct gpus *gpus;
    struct kernel_asker *kernels;
    struct metric_recorder *metrics; /* NULL: none are recorded */
    struct mps *mps;
    struct preload_manager *preload;
    struct suspension *suspension;
    struct http_hooks hooks;
};

#endif
