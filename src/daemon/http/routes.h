/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the routes, by file, and what some of them share. */
#ifndef COLLOC_DAEMON_HTTP_ROUTES_H
#define COLLOC_DAEMON_HTTP_ROUTES_H

#include "api/server_options.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/http_record.h"
#include "daemon/http/http_state.h"
#include "daemon/http/permission.h"

/* The table of all routes, which ends in NULL; their context is the part. */
extern const struct api_route http_routes[];

/* Returns the core's task if the user may speak for it (its owner and root); else the request is
 * answered: NULL. */
const struct task *http_find_own_task(struct http *http, struct api_request *request);

/* route_daemon.c */
void route_gpus(void *context, struct api_request *request);
void route_clear(void *context, struct api_request *request);
void route_metrics(void *context, struct api_request *request);
void route_info(void *context, struct api_request *request);
void route_web(void *context, struct api_request *request);
void route_stats(void *context, struct api_request *request);

/* route_step.c */
void route_step(void *context, struct api_request *request);

/* route_metric.c */
void route_metric(void *context, struct api_request *request);

/* route_latency.c */
void route_latency(void *context, struct api_request *request);

/* submission_queue.c */
void route_submit(void *context, struct api_request *request);

/* route_samples.c */
void route_samples(void *context, struct api_request *request);

/* route_series.c: a query of all GPUs that have an index, for free; NULL when memory is out. */
struct metric_query *series_query_create(const struct http *http);
void route_task_series(void *context, struct api_request *request);
void route_gpu_series(void *context, struct api_request *request);

/* route_events.c */
void route_events(void *context, struct api_request *request);

/* route_list.c */
void route_list(void *context, struct api_request *request);

/* route_trace.c */
void route_trace(void *context, struct api_request *request);

/* route_task.c */
void route_show(void *context, struct api_request *request);
void route_cancel(void *context, struct api_request *request);
void route_requeue(void *context, struct api_request *request);
void route_hold(void *context, struct api_request *request);
void route_suspend(void *context, struct api_request *request);
void route_resume(void *context, struct api_request *request);
void route_move(void *context, struct api_request *request);
void route_release(void *context, struct api_request *request);

/* route_many.c: the same of a list of tasks */
void route_cancel_many(void *context, struct api_request *request);
void route_hold_many(void *context, struct api_request *request);
void route_release_many(void *context, struct api_request *request);

/* route_reserve.c */
void route_reservations(void *context, struct api_request *request);
void route_reserve(void *context, struct api_request *request);

/* route_update.c */
void route_update(void *context, struct api_request *request);

/* route_array.c: answers if the path names an array. Returns whether it did. `change`: fed for each
 * of its tasks, with `detail`; dependencies of an UPDATE are copied. */
bool array_was_shown(struct http *http, struct api_request *request);
bool array_was_changed(struct http *http, struct api_request *request, const struct event *change,
    json_t *detail, const char *verb);

/* route_request.c; request_keep: puts what the route answers into the detail of a SUBMIT */
void route_request(void *context, struct api_request *request);
void request_keep(const json_t *body, json_t *detail);

/* route_profile.c */
void route_profile(void *context, struct api_request *request);

/* route_wait.c */
void route_wait(void *context, struct api_request *request);

/* route_log.c */
void route_log(void *context, struct api_request *request);

/* route_starts.c */
void route_starts(void *context, struct api_request *request);

/* route_share.c */
void route_share(void *context, struct api_request *request);

/* route_mps.c */
void route_mps(void *context, struct api_request *request);
void route_mps_start(void *context, struct api_request *request);
void route_mps_stop(void *context, struct api_request *request);

#endif
