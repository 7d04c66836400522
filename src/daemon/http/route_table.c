/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the routes of docs/protocol.md. */
#include "daemon/http/routes.h"

/* Routes that operators may use, each run by with_name. */
#define AFTER_NAME(route)                                                                          \
    static void named_##route(void *context, struct api_request *request)                          \
    {                                                                                              \
        with_name(context, request, route_##route);                                                \
    }

AFTER_NAME(cancel)
AFTER_NAME(cancel_many)
AFTER_NAME(hold)
AFTER_NAME(hold_many)
AFTER_NAME(move)
AFTER_NAME(release)
AFTER_NAME(release_many)
AFTER_NAME(requeue)
AFTER_NAME(reserve)
AFTER_NAME(resume)
AFTER_NAME(suspend)
AFTER_NAME(update)

const struct api_route http_routes[] = {
    {"POST", "/v1/tasks", route_submit},
    {"GET", "/v1/tasks", route_list},
    {"GET", "/v1/tasks/{id}", route_show},
    {"GET", "/v1/tasks/{id}/wait", route_wait},
    {"GET", "/v1/tasks/{id}/log", route_log},
    {"GET", "/v1/tasks/{id}/request", route_request},
    {"GET", "/v1/tasks/{id}/series", route_task_series},
    {"POST", "/v1/tasks/cancel", named_cancel_many},
    {"POST", "/v1/tasks/hold", named_hold_many},
    {"POST", "/v1/tasks/release", named_release_many},
    {"POST", "/v1/tasks/{id}/cancel", named_cancel},
    {"POST", "/v1/tasks/{id}/requeue", named_requeue},
    {"POST", "/v1/tasks/{id}/hold", named_hold},
    {"POST", "/v1/tasks/{id}/update", named_update},
    {"POST", "/v1/tasks/{id}/suspend", named_suspend},
    {"POST", "/v1/tasks/{id}/resume", named_resume},
    {"POST", "/v1/tasks/{id}/move", named_move},
    {"POST", "/v1/tasks/{id}/release", named_release},
    {"POST", "/v1/tasks/{id}/latency", route_latency},
    {"POST", "/v1/tasks/{id}/metric", route_metric},
    {"POST", "/v1/tasks/{id}/steps", route_step},
    {"POST", "/v1/tasks/{id}/profile", route_profile},
    {"GET", "/v1/events", route_events},
    {"GET", "/v1/gpus", route_gpus},
    {"GET", "/v1/gpus/{name}/series", route_gpu_series},
    {"POST", "/v1/gpus/clear", route_clear},
    {"GET", "/v1/samples", route_samples},
    {"GET", "/v1/share", route_share},
    {"GET", "/v1/starts", route_starts},
    {"GET", "/v1/reservations", route_reservations},
    {"POST", "/v1/reservations", named_reserve},
    {"POST", "/v1/reservations/{id}/cancel", named_reserve},
    {"GET", "/v1/mps", route_mps},
    {"POST", "/v1/mps/start", route_mps_start},
    {"POST", "/v1/mps/stop", route_mps_stop},
    {"POST", "/v1/web", route_web},
    {"GET", "/v1/info", route_info},
    {"GET", "/v1/metrics", route_metrics},
    {"GET", "/v1/stats", route_stats},
    {"GET", "/v1/trace", route_trace},
    {NULL, NULL, NULL},
};
