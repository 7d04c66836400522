/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of routes share. */
#ifndef COLLOC_DAEMON_HTTP_ROUTES_H
#define COLLOC_DAEMON_HTTP_ROUTES_H

#include "daemon/array_tasks.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/http_state.h"
#include "daemon/http/permission.h"

/* Returns the uid in the record of a task. */
uint32_t owner_of(const json_t *record);

/* Returns the part of a record that the requesting user may see: only the owner and root see the
 * command line and the evidence, a line of the task's log. Takes over the record. Returns NULL when
 * memory is out. */
json_t *for_asker(const struct api_request *request, json_t *record);

/* Returns what users other than the task's owner may see of a record. Takes over the record.
 * Returns NULL for NULL, and when memory is out. */
json_t *public_record(json_t *record);

/* Replies {"task": ...} with the part that the user may see, and a "note" unless that is "". Takes
 * over the record. */
void reply_task_noted(struct api_request *request, int status, json_t *record, const char *note);
void reply_task(struct api_request *request, json_t *record);

/*
 * Finds the task that 12 or 12_7 names.
 *
 * id, index_text: 12; and "7", the index in array 12, or "": `id` is the task's own
 * array:          as of array_tasks_read
 *
 * Returns the task; 0: array 12 has no such index.
 */
uint64_t find_task_id(
    const struct http *http, uint64_t id, const char *index_text, struct array_tasks *array);

/* Returns the task that the path names, in the same way. */
uint64_t request_task_id(const struct http *http, const struct api_request *request);

/* Says that there is no such task. `index_text`: as of find_task_id. */
void set_no_task(struct fault *fault, uint64_t id, const char *index_text);

/* Answers that there is no such task; 0: none of the array has the index that the path names. */
void reply_no_task(struct api_request *request, uint64_t id);

/* Returns the record of a task, live or ended, which the caller releases; NULL after having
 * answered that there is none, or that the log cannot be read. */
json_t *find_record(struct http *http, struct api_request *request, uint64_t id);

/* The table of all routes, which ends in NULL; their context is the part. */
extern const struct api_route http_routes[];

/* Return the core's task if the user may speak for it (its owner and root), or may change it
 * (operators, too); else the request is answered: NULL. */
const struct task *find_own_task(struct http *http, struct api_request *request);
const struct task *find_changeable_task(struct http *http, struct api_request *request);

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

/* After an UPDATE was fed: puts its limits in force for the attempt of its task. Sets the fault if
 * not all of them are. */
void http_apply_limits(const struct http *http, const struct event *event, struct fault *fault);

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
