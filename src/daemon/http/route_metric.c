/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks/ID/metric: a task of an array with a stop rule reports its metric at a step.
 *
 * A report that reaches no new rung changes nothing and is not stored, so a task that reports each
 * step costs a request for each, and at most STOP_RUNGS_MAX events. A report counts for the highest
 * rung that its step has reached. Only the task's owner and root may report, and only the tasks of
 * its array are compared.
 */
#include <math.h>
#include <string.h>

#include "core/halving.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/routes.h"

/* What the answer says about the task: its last report at a rung, or null. */
static json_t *stop_answer(const struct http *http, const struct task *task)
{
    json_t *answer = json_object();
    json_object_set_new(answer, "task", json_integer((json_int_t)task->id));
    json_object_set_new(answer, "stop_rank", http_stop_json(http, task));
    return answer;
}

/* The value as a reading; JSON has no NaN: null, or a number that is not finite, is the worst. */
static bool read_value(const json_t *value, struct reading *ret_value)
{
    bool is_finite = json_is_number(value) && isfinite(json_number_value(value));
    *ret_value = is_finite ? reading_of(json_number_value(value)) : READING_NONE;
    return json_is_number(value) || json_is_null(value);
}

void route_metric(void *context, struct api_request *request)
{
    struct http *http = context;
    const json_t *body = api_request_body(request), *step = json_object_get(body, "step");
    const char *name = json_string_value(json_object_get(body, "name"));
    const struct task *task = http_find_own_task(http, request);
    struct reading value;
    if (!task)
        return;
    const struct halving_rule *rule = core_halving_rule(http->parts.core, task->array.id);
    json_int_t number = json_integer_value(step);
    if (!name || !json_is_integer(step) || number < 0 || number > STOP_STEP_MAX ||
        !read_value(json_object_get(body, "value"), &value)) {
        api_reply_error(request, 400,
            "give name (a text), step (a whole number from 0 on) and value (a number; null: NaN)");
        return;
    }
    if (!task_state_has_attempt(task->state)) {
        api_reply_error(request, 409, "task %llu does not run", (unsigned long long)task->id);
        return;
    }
    uint64_t id = task->id;
    int rung = rule && strcmp(name, rule->metric) == 0 ? halving_rung(rule, number) : -1;
    if (rung >= task->run->n_rungs) {
        struct event event = driver_event(http->parts.driver, EVENT_METRIC, task->array.id);
        event.metric.task = task->id;
        event.metric.rung = rung;
        event.metric.value = value;
        driver_feed(http->parts.driver, &event, NULL);
        task = core_task(http->parts.core, id);
    }
    api_reply(request, 200, stop_answer(http, task));
}
