/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/tasks/ID/wait: answers when the task ends, or when the time is up. */
#include <stdlib.h>

#include "api/answer_time.h"
#include "base/units.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/routes.h"

enum {
    WAIT_DEFAULT_S = 30,
    WAIT_MAX_S = 60, /* chosen: clients ask again */
};

_Static_assert((int)WAIT_MAX_S <= (int)ANSWER_MAX_S, "clients wait that long");

struct waiter {
    struct waiter *next;
    struct http *http;
    struct api_request *request;
    uint64_t task;
    uv_timer_t timer;
};

static void on_waiter_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void unlink_waiter(struct http *http, struct waiter *waiter)
{
    for (struct waiter **at = &http->waiters; *at; at = &(*at)->next) {
        if (*at == waiter) {
            *at = waiter->next;
            break;
        }
    }
    uv_close((uv_handle_t *)&waiter->timer, on_waiter_closed);
}

static void on_waited_enough(uv_timer_t *timer)
{
    struct waiter *waiter = timer->data;
    struct http *http = waiter->http;
    json_t *record = http_find_record(http, waiter->request, waiter->task);
    if (record)
        http_reply_task(waiter->request, record);
    unlink_waiter(http, waiter);
    http_serve_soon(http);
}

void waiters_answer(struct http *http, uint64_t task, const json_t *record)
{
    for (struct waiter *waiter = http->waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        if (task && waiter->task != task)
            continue;
        if (record)
            http_reply_task(waiter->request, json_incref((json_t *)(uintptr_t)record));
        unlink_waiter(http, waiter);
        http_serve_soon(http);
    }
}

void route_wait(void *context, struct api_request *request)
{
    struct http *http = context;
    if (array_was_shown(http, request))
        return;
    uint64_t id = http_request_task_id(http, request);
    const char *timeout = api_request_query(request, "timeout_s");
    double seconds = WAIT_DEFAULT_S;
    if (timeout && parse_double(timeout, 0, 1e9, &seconds) < 0) {
        api_reply_error(request, 400, "timeout_s=%.40s: is no number of seconds", timeout);
        return;
    }
    struct waiter *waiter = core_task(http->parts.core, id) ? calloc(1, sizeof *waiter) : NULL;
    if (!waiter) {
        json_t *record = http_find_record(http, request, id);
        if (record)
            http_reply_task(request, record);
        return;
    }
    waiter->http = http;
    waiter->request = request;
    waiter->task = id;
    uv_timer_init(http->parts.loop, &waiter->timer);
    waiter->timer.data = waiter;
    seconds = seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S;
    uv_timer_start(&waiter->timer, on_waited_enough, (uint64_t)(seconds * 1000), 0);
    waiter->next = http->waiters;
    http->waiters = waiter;
}
