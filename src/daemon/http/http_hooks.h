/* SPDX-License-Identifier: Apache-2.0 */
/* What the part http is given when it is created: the hooks that it calls, and what it borrows. */
#ifndef COLLOC_DAEMON_HTTP_HTTP_HOOKS_H
#define COLLOC_DAEMON_HTTP_HTTP_HOOKS_H

#include <jansson.h>
#include <stdio.h>
#include <uv.h>

#include "api/server.h"
#include "daemon/config.h"
#include "daemon/disk.h"
#include "daemon/driver.h"
#include "daemon/gpu_report.h"
#include "daemon/jobs.h"
#include "daemon/metric_query.h"
#include "daemon/run_history.h"
#include "exec/cgroup.h"
#include "exec/torch_order.h"
#include "service/user_names.h"
#include "store/store.h"

/* What the part calls. All must be set; each gets `context`. */
struct http_hooks {
    void *context;

    gpu_report_hook *report_gpu;

    /* Returns why there are no GPUs; "" where there are. */
    const char *(*why_no_gpus)(void *context);

    /* For how long a resident of GPU `i` has not used it, in microseconds; `ret_is_long`: longer
     * than the setting unused-after. */
    struct reading (*gpu_idle_us)(
        void *context, size_t i, const struct resident *resident, bool *ret_is_long);

    struct gpu_totals (*gpu_totals)(void *context);

    /* The file system of the state folder; disk_get_space of daemon/disk.h. */
    struct disk_space (*disk_space)(void *context);

    /* Writes the stored samples since `since_us` (wall time) as JSON. Returns 0 or -errno. */
    int (*write_gpu_history)(void *context, int64_t since_us, FILE *out);

    /* Runs a query of metrics over time, for metric_recorder_ask. Returns false where none are
     * recorded: the caller then still owns the arguments. */
    bool (*ask_metrics)(void *context, struct metric_query *query, char *head,
        metric_on_answer *on_answer, void *asker);

    /* Forgets the Xid errors of GPU `i`. */
    void (*clear_gpu_errors)(void *context, size_t i);

    /* Requests were answered, perhaps also those of another server with these routes. */
    void (*served)(void *context);

    /* Makes the address of a login to the web page; web_make_login of web/web_server.h. */
    int (*make_login)(
        void *context, const struct api_peer *peer, struct fault *fault, char **ret_url);

    /* Returns what the machine lacks for the task's start; NULL: its start is not deferred. */
    const char *(*why_deferred)(void *context, uint64_t task);

    /* Returns whether the task has a shim that is watched. */
    bool (*is_watched)(void *context, uint64_t task);

    /* mps_list, mps_start_by_hand, mps_stop_by_hand and mps_find_group of mps/mps_manager.h. */
    json_t *(*list_mps)(void *context);
    int (*start_mps)(
        void *context, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault);
    int (*stop_mps)(void *context, uid_t uid, const char *instance, struct api_request *asker,
        struct fault *fault);
    bool (*find_mps_group)(void *context, uid_t uid, gid_t *ret_gid);

    /* Returns why the last suspension or move of the task failed; "": none did. */
    const char *(*why_suspension_failed)(void *context, uint64_t task);

    /* Answers the request when the suspension, resumption or move of the task is done. Returns
     * false when none is under way. */
    bool (*answer_suspension_later)(void *context, uint64_t task, struct api_request *request);

    /* The limits of a task were changed, which may have an attempt. Returns 0, or -errno with a
     * fault: not all of them are in force there. */
    int (*limits_changed)(void *context, uint64_t task, struct fault *fault);

    /* Passes an order to PyTorch's profiler on to a task that runs. Returns 0 or -errno. */
    int (*order_profile)(void *context, uint64_t task, const struct torch_order *order);

    /* Has a process of the task asked for such orders? attempts_profile_was_asked of
     * attempts/attempts.h. */
    int (*profile_was_asked)(void *context, uint64_t task);

    /* Returns which limits of tasks are enforced; attempts_enforced of attempts/attempts.h. */
    struct cgroup_controllers (*enforced)(void *context);
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
    struct http_hooks hooks;
};

#endif
