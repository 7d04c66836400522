/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks/ID/suspend, resume and move. If the core refuses, the reply comes at once with the
 * reason; otherwise when the suspension, resumption or move is done or has failed.
 */
#include <errno.h>
#include <string.h>

#include "daemon/http/http_answers.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"
#include "daemon/http/task_change.h"

enum { GPUS_MOST = 16 }; /* of a task that is moved; as GROUP_GPUS_MAX */

/* only_owner: no operator, unless it is the task's owner */
static const struct task *find_allowed_task(
    struct http *http, struct api_request *request, bool only_owner)
{
    uint64_t id = http_request_task_id(http, request);
    json_t *record = http_find_record(http, request, id);
    const struct task *task = core_task(http->parts.core, id);
    if (!record)
        return NULL;
    uint32_t owner = http_record_owner(record);
    bool is_allowed = only_owner ? may_touch(request, owner)
                                 : may_change(http, api_request_peer(request).uid, owner);
    bool is_broken = driver_log_is_broken(http->parts.driver);
    struct fault fault = {0};
    json_decref(record);
    if (is_allowed && !is_broken && task)
        return task;
    set_not_yours(&fault, "task", id);
    if (!is_allowed)
        api_reply_error(request, 403, "%s", fault.text);
    else if (is_broken)
        api_reply_error(request, 507, "the event log cannot be written at the moment");
    else
        api_reply_error(request, 409, "task %llu has ended", (unsigned long long)id);
    return NULL;
}

const struct task *http_find_own_task(struct http *http, struct api_request *request)
{
    return find_allowed_task(http, request, true);
}

/* Operators may change it, too. */
static const struct task *find_changeable_task(struct http *http, struct api_request *request)
{
    return find_allowed_task(http, request, false);
}

/* Feeds the command; the request is answered now, or when what follows is done. */
static void feed_command(struct http *http, struct api_request *request, struct event *event)
{
    uint64_t id = event->task;
    uid_t uid = api_request_peer(request).uid;
    struct fault fault;
    if (http_check_command(http, uid, event, &fault) < 0) {
        api_reply_error(request, 429, "%s", fault.text);
        return;
    }
    json_t *detail = author_detail(http, uid);
    int r = driver_feed(http->parts.driver, event, detail);
    json_decref(detail);
    if (r != 0) {
        const struct task *task = core_task(http->parts.core, id);
        api_reply_error(request, 409, "task %llu is %s: it cannot be %s", (unsigned long long)id,
            task ? task_state_name(task->state) : "not there any more",
            event->kind == EVENT_RESUME ? "resumed" : "suspended or moved");
    } else if (!suspension_answer_later(http->parts.suspension, id, request)) {
        json_t *now = http_find_record(http, request, id);
        if (now)
            http_reply_task(request, now);
    }
}

void route_suspend(void *context, struct api_request *request)
{
    struct http *http = context;
    struct fault fault;
    const struct task *task = find_changeable_task(http, request);
    if (!task)
        return;
    struct event event = driver_event(http->parts.driver, EVENT_SUSPEND, task->id);
    if (core_check_suspend(http->parts.core, task->id, &fault) < 0)
        api_reply_error(request, 409, "%s", fault.text);
    else
        feed_command(http, request, &event);
}

void route_resume(void *context, struct api_request *request)
{
    struct http *http = context;
    const struct task *task = find_changeable_task(http, request);
    if (!task)
        return;
    struct event event = driver_event(http->parts.driver, EVENT_RESUME, task->id);
    feed_command(http, request, &event);
}

static int find_gpu(const struct http *http, const char *name)
{
    return cluster_view_find(core_view(http->parts.core), name, strlen(name));
}

/* {"gpus": ["1", "GPU-..."]}. Returns how many, or a fault. */
static int read_gpus(
    const struct http *http, const json_t *body, int *ret_gpus, struct fault *fault)
{
    const json_t *list = json_object_get(body, "gpus");
    size_t count = json_array_size(list);
    if (count == 0 || count > GPUS_MOST)
        return fault_set(fault, EINVAL, "gpus: give a list of 1 to %d indices or UUIDs", GPUS_MOST);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        ret_gpus[i] = name ? find_gpu(http, name) : -1;
        if (ret_gpus[i] < 0)
            return fault_set(
                fault, EINVAL, "gpus: there is no GPU %s", name ? name : "of that name");
    }
    return (int)count;
}

void route_move(void *context, struct api_request *request)
{
    struct http *http = context;
    int gpus[GPUS_MOST];
    struct fault fault;
    const struct task *task = find_changeable_task(http, request);
    if (!task)
        return;
    int n = read_gpus(http, api_request_body(request), gpus, &fault);
    if (n < 0) {
        api_reply_error(request, 400, "%s", fault.text);
        return;
    }
    struct event event = driver_event(http->parts.driver, EVENT_MOVE, task->id);
    event.yield.gpus = gpus;
    event.yield.n = n;
    if (core_check_move(http->parts.core, task->id, gpus, n, event.time_us, &fault) < 0)
        api_reply_error(request, 409, "%s", fault.text);
    else
        feed_command(http, request, &event);
}

void http_answer_with_task(
    struct http *http, struct api_request *request, uint64_t id, const char *why)
{
    json_t *now = why ? NULL : http_find_record(http, request, id);
    if (why)
        api_reply_error(request, 409, "task %llu: %s", (unsigned long long)id, why);
    if (now)
        http_reply_task(request, now);
    http_serve_soon(http);
}
