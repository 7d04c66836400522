/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks, GPUs and the daemon as the JSON objects of docs/protocol.md. The caller releases each. */
#ifndef COLLOC_DAEMON_HTTP_PUBLIC_JSON_H
#define COLLOC_DAEMON_HTTP_PUBLIC_JSON_H

#include "api/json_value.h"
#include "daemon/http/http_state.h"

/* A moment of the core's time as seconds since 1970; null when it is not known. */
static inline json_t *json_moment(const struct http *http, int64_t time_us, bool is_known)
{
    return is_known ? json_seconds(driver_wall_us(http->parts.driver, time_us)) : json_null();
}

/* Returns the state's word: a task whose start is deferred is PENDING. */
const char *public_task_state(const struct http *http, const struct task *task);

/* Returns "ok", "lost", ..., and in `ret_text` the reason; "" when ok. The GPU is managed. */
const char *public_gpu_health(
    const struct http *http, const struct gpu_report *gpu, const char **ret_text);

/* Return the answers of GET /v1/gpus and GET /v1/info, for the caller to release; NULL when memory
 * is out. */
json_t *public_gpus(const struct http *http);
json_t *public_info(const struct http *http);

/* Counts the tasks that wait for a start, and the tasks that have GPUs. */
void public_counts(const struct http *http, int *ret_queued, int *ret_running);

/* Does the GPU answer? The last reading of a lost GPU, or of one that has not answered for long, is
 * out of date. */
bool public_gpu_is_current(const struct http *http, const struct gpu_report *gpu);

#endif
