/* SPDX-License-Identifier: Apache-2.0 */
/* What happens elsewhere and ends in an answer: the end of a task, a suspension that is done, a
 * user that was looked up, a scrape of the metrics. */
#ifndef COLLOC_DAEMON_HTTP_HTTP_ANSWERS_H
#define COLLOC_DAEMON_HTTP_HTTP_ANSWERS_H

#include <jansson.h>

#include "daemon/http/http.h"

/* A request was answered outside of its handler: the server writes it in the loop's next turn. */
void http_serve_soon(struct http *http);

/* A task has ended. `record`: as http_task_json made it; borrowed. */
void http_task_ended(struct http *http, uint64_t task, const json_t *record);

/* Answers a request outside of its handler: with the task as it is now; or with 409 and `why`, if
 * that is not NULL. */
void http_answer_with_task(
    struct http *http, struct api_request *request, uint64_t task, const char *why);

/* The user database was queried for this user. */
void http_name_changed(struct http *http, const struct name *name);

/* Reads the record of a task, live or ended, which the caller releases. Returns 0; STORE_NONE:
 * there is none; or -errno with a fault. */
int http_read_record(struct http *http, uint64_t id, struct fault *fault, json_t **ret_record);

/* Returns the public TASK object of docs/protocol.md, which the caller releases; NULL when memory
 * is out. */
json_t *http_task_json(struct http *http, const struct task *task);

/* Returns the task's last report at a rung of its stop rule; null: it has none. */
json_t *http_stop_json(const struct http *http, const struct task *task);

/* Returns the same with those members only that a list for people shows (`short=1`). */
json_t *http_task_summary_json(struct http *http, const struct task *task);

/* Returns the metrics of GPUs and tasks for Prometheus, in its text format or as OpenMetrics, for
 * the caller to free; NULL when memory is out. */
char *http_make_metrics(const struct http *http, bool is_openmetrics);

#endif
