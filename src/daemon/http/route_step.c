/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks/ID/steps: `srun` in the script of a task begins a step, or says how it ended.
 *
 *     {"name": "python", "processes": 2}      201 {"step": 0}
 *     {"step": 0, "exit_code": 1}             200 {"step": 0}
 *
 * Only the task's owner and root may report. An attempt has at most STEPS_MAX steps; the log's text
 * of them counts as text of the user.
 */
#include <string.h>

#include "daemon/http/http_answers.h"
#include "daemon/http/routes.h"
#include "daemon/step_list.h"

enum { PROCESSES_MAX = 1000000, EXIT_CODE_MAX = 255, SIGNAL_MAX = 64 };

static bool read_number(const json_t *body, const char *key, int least, int most, int *ret_number)
{
    const json_t *number = json_object_get(body, key);
    json_int_t value = json_integer_value(number);
    if (!json_is_integer(number) || value < least || value > most)
        return false;
    *ret_number = (int)value;
    return true;
}

/* Returns whether it was fed; otherwise the request has an answer. */
static bool feed_step(
    struct http *http, struct api_request *request, const struct task *task, json_t *detail)
{
    struct event event = driver_event(http->parts.driver, EVENT_STEP, task->id);
    int r = detail ? driver_feed(http->parts.driver, &event, detail) : -1;
    json_decref(detail);
    if (r != 0)
        api_reply_error(request, 500, "the step could not be recorded");
    return r == 0;
}

static void begin_step(
    struct http *http, struct api_request *request, const struct task *task, const struct job *job)
{
    const json_t *body = api_request_body(request);
    const char *name = json_string_value(json_object_get(body, "name"));
    int processes = 1, step = step_list_next(job->srun_steps, task->attempts);
    if (!*name || strlen(name) > STEP_NAME_MAX ||
        (json_object_get(body, "processes") &&
            !read_number(body, "processes", 1, PROCESSES_MAX, &processes)))
        api_reply_error(request, 400,
            "give name (1 to %d bytes) and processes (a number from 1 on)", STEP_NAME_MAX);
    else if (step >= STEPS_MAX)
        api_reply_error(request, 409, "task %llu has %d steps, which is the most",
            (unsigned long long)task->id, STEPS_MAX);
    else if (jobs_bytes_of_user(http->parts.jobs, job->uid, driver_now_us(http->parts.driver)) >=
             http->parts.config->bytes_per_user)
        api_reply_error(request, 409,
            "your tasks have as much text in the event log as a user may have here "
            "(bytes-per-user)");
    else if (feed_step(http, request, task, step_list_begin(task->attempts, step, name, processes)))
        api_reply(request, 201, json_pack("{s:i}", "step", step));
}

static void end_step(
    struct http *http, struct api_request *request, const struct task *task, const struct job *job)
{
    const json_t *body = api_request_body(request);
    int step, exit_code = 0, signal = 0;
    bool is_valid = read_number(body, "step", 0, STEPS_MAX - 1, &step) &&
                    read_number(body, "exit_code", 0, EXIT_CODE_MAX, &exit_code) !=
                        read_number(body, "signal", 1, SIGNAL_MAX, &signal);
    if (!is_valid)
        api_reply_error(
            request, 400, "give step, and exit_code (0 to 255) or signal (1 to %d)", SIGNAL_MAX);
    else if (!step_list_is_open(job->srun_steps, task->attempts, step))
        api_reply_error(
            request, 409, "task %llu has no step %d that runs", (unsigned long long)task->id, step);
    else if (feed_step(http, request, task, step_list_end(task->attempts, step, exit_code, signal)))
        api_reply(request, 200, json_pack("{s:i}", "step", step));
}

void route_step(void *context, struct api_request *request)
{
    struct http *http = context;
    const struct task *task = http_find_own_task(http, request);
    if (!task)
        return;
    const struct job *job = jobs_find(http->parts.jobs, task->id);
    if (!job || !task_state_has_attempt(task->state))
        api_reply_error(request, 409, "task %llu does not run", (unsigned long long)task->id);
    else if (driver_log_is_broken(http->parts.driver))
        api_reply_error(request, 507, "the event log cannot be written at the moment");
    else if (json_is_string(json_object_get(api_request_body(request), "name")))
        begin_step(http, request, task, job);
    else
        end_step(http, request, task, job);
}
