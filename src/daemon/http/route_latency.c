/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks/ID/latency: a service reports how long its requests take, where colloc does not
 * probe it. What was reported holds for 30 seconds (core/state/service.c).
 */
#include "daemon/http/http_answers.h"
#include "daemon/http/routes.h"

/* Chosen: a longer latency makes no difference. */
#define LATENCY_MAX_MS 1e9

void route_latency(void *context, struct api_request *request)
{
    struct http *http = context;
    const json_t *p99_ms = json_object_get(api_request_body(request), "p99_ms");
    const struct task *task = http_find_own_task(http, request);
    if (!task)
        return;
    double value = json_number_value(p99_ms);
    if (!json_is_number(p99_ms) || !(value >= 0 && value <= LATENCY_MAX_MS)) {
        api_reply_error(request, 400, "p99_ms: give the p99 of its requests in milliseconds");
        return;
    }
    struct event event = driver_event(http->parts.driver, EVENT_LATENCY, task->id);
    event.p99_us = reading_of((double)(int64_t)(value * 1e3));
    if (driver_feed(http->parts.driver, &event, NULL) != 0)
        api_reply_error(
            request, 409, "task %llu is no service, or does not run", (unsigned long long)task->id);
    else
        api_reply(request, 200, json_object());
}
