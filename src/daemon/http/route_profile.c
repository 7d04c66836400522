/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks/ID/profile: PyTorch's profiler records some steps of a running task, or some time
 * of it. The daemon writes the order into the folder of the attempt, where the task's responder
 * finds it (exec/torch_responder.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"
#include "exec/torch_order.h"
#include "taskfile/torch_steps.h"

#define SECONDS_LEAST 0.01
#define SECONDS_MOST  600 /* chosen: a trace of a second has some ten MiB */

static int read_order(const json_t *body, struct fault *fault, struct torch_order *ret_order)
{
    bool has_steps = false, has_time = false;
    double for_s = 0;
    *ret_order = (struct torch_order){.number = clock_wall_us()};
    int r = field_integer(body, "steps", 1, TORCH_STEPS_MAX, fault, &has_steps, &ret_order->steps);
    if (r == 0)
        r = field_number(body, "for_s", SECONDS_LEAST, SECONDS_MOST, fault, &has_time, &for_s);
    if (r == 0 && has_steps == has_time)
        r = fault_set(fault, EINVAL, "give steps (how many) or for_s (how long)");
    ret_order->duration_ms = (int64_t)(for_s * 1e3);
    return r;
}

/* Was it submitted with --profile=torch? */
static bool takes_orders(const struct http *http, const struct task *task)
{
    struct torch_steps steps;
    json_t *detail = NULL;
    int r = job_read_detail(http->parts.store, task->id, NULL, &detail);
    const char *profile = json_string_value(json_object_get(detail, "profile"));
    bool takes = r == 0 && profile && torch_steps_parse(profile, &steps) == 0;
    json_decref(detail);
    return takes;
}

/* Which files to expect, and why none may come. */
static void reply_ordered(struct http *http, struct api_request *request, const struct task *task)
{
    char name[64], *note = NULL;
    json_t *detail = NULL;
    int asked = attempts_profile_was_asked(http->parts.attempts, task->id);
    bool has_detail = job_read_detail(http->parts.store, task->id, NULL, &detail) == 0;
    const char *folder = has_detail ? json_string_value(json_object_get(detail, "cwd")) : NULL;
    if (task->array.id)
        snprintf(name, sizeof name, "colloc-%" PRIu64 "_%" PRId64, (uint64_t)task->array.id,
            (int64_t)task->array.index);
    else
        snprintf(name, sizeof name, "colloc-%" PRIu64, task->id);
    int n = asprintf(&note,
        "task %" PRIu64 ": each of its processes that uses PyTorch writes %s/%s.torch_PID.json, "
        "for later recordings torch-2, torch-3 and so on%s",
        task->id, folder ? folder : "in its folder", name,
        asked == 0 ? "; no process of the task has asked what to record yet: a program that does "
                     "not use PyTorch (1.13 or newer) never does, and no file appears"
                   : "");
    http_reply_task_noted(request, 200, http_task_json(http, task), n < 0 ? "" : note);
    if (n >= 0)
        free(note);
    json_decref(detail);
}

void route_profile(void *context, struct api_request *request)
{
    struct http *http = context;
    struct torch_order order;
    struct fault fault = {0};
    const struct task *task = http_find_own_task(http, request);
    if (!task)
        return;
    unsigned long long id = task->id;
    if (read_order(api_request_body(request), &fault, &order) < 0)
        api_reply_error(request, 400, "%s", fault.text);
    else if (!takes_orders(http, task))
        api_reply_error(
            request, 409, "task %llu was not submitted with --profile=torch: submit it so", id);
    else if (task->state != TASK_RUNNING)
        api_reply_error(request, 409, "task %llu does not run", id);
    else if (attempts_order_profile(http->parts.attempts, task->id, &order) < 0)
        api_reply_error(request, 507, "task %llu: the order cannot be written", id);
    else
        reply_ordered(http, request, task);
}
