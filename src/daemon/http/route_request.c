/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/tasks/ID/request: what a task was submitted with, for `colloc rerun`. The log has it in
 * parts: the options in the detail of SUBMIT, script, environment and summary as texts of their
 * own. Of one task of an array the indices are its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "daemon/array_tasks.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"
#include "daemon/job.h"

void request_keep(const json_t *body, json_t *detail)
{
    static const char *const apart[] = {"script", "environment", "arguments", "cwd", "umask"};
    json_t *rest = json_copy((json_t *)(uintptr_t)body);
    json_t *summary = json_copy(json_object_get(body, "summary"));
    for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
        json_object_del(rest, apart[i]);
    if (summary) { /* its text is one of the texts */
        json_object_del(summary, "text");
        json_object_set_new(rest, "summary", summary);
    }
    json_object_set_new(detail, "request", rest);
}

/* Adds a text of the log. Returns 0, or -errno with a fault. */
static int read_text(const struct http *http, const json_t *detail, const char *key,
    struct fault *fault, char **ret_data, size_t *ret_size)
{
    const char *blob = json_string_value(json_object_get(detail, key));
    *ret_data = NULL;
    *ret_size = 0;
    int r = blob ? store_get_blob(http->parts.store, blob, fault, ret_data, ret_size) : STORE_NONE;
    return r > 0 ? fault_set(fault, ENOENT, "its %s is missing from the event log", key) : r;
}

/* "A=1\0B=2\0" */
static json_t *environment_of(const char *data, size_t size)
{
    json_t *object = json_object();
    for (size_t at = 0; at < size; at += strlen(data + at) + 1) {
        const char *entry = data + at, *equals = strchr(entry, '=');
        if (equals)
            json_object_setn_new(object, entry, (size_t)(equals - entry), json_string(equals + 1));
    }
    return object;
}

static int add_texts(
    const struct http *http, const json_t *detail, json_t *body, struct fault *fault)
{
    char *data;
    size_t size;
    int r = read_text(http, detail, "script", fault, &data, &size);
    if (r < 0)
        return r;
    json_object_set_new(body, "script", json_stringn(data, size));
    free(data);
    r = read_text(http, detail, "environment", fault, &data, &size);
    if (r < 0)
        return r;
    json_object_set_new(body, "environment", environment_of(data, size));
    free(data);
    json_t *summary = json_object_get(body, "summary");
    if (!summary || json_object_get(summary, "path"))
        return 0;
    r = read_text(http, detail, "summary", fault, &data, &size);
    if (r < 0)
        return r;
    json_object_set_new(summary, "text", json_stringn(data, size));
    free(data);
    return 0;
}

/* `index`: of one task of an array; -1: all of it, or no array. */
static void reply_request(
    const struct http *http, struct api_request *request, const json_t *detail, int index)
{
    static const char *const apart[] = {"arguments", "cwd", "umask"};
    struct fault fault = {0};
    json_t *body = json_deep_copy(json_object_get(detail, "request"));
    if (!body) {
        api_reply_error(request, 409,
            "it was submitted to an older version of colloc, which did not keep the request: "
            "submit it again");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
        json_object_set(body, apart[i], json_object_get(detail, apart[i]));
    if (index >= 0)
        json_object_set_new(body, "array", json_sprintf("%d", index));
    int r = add_texts(http, detail, body, &fault);
    if (r < 0)
        api_reply_error(request, 500, "%s", fault.text);
    else
        api_reply(request, 200, json_pack("{s:O}", "request", body));
    json_decref(body);
}

static bool is_owner(struct api_request *request, uint32_t owner)
{
    if ((uint32_t)api_request_peer(request).uid == owner)
        return true;
    api_reply_error(request, 403, "the request of a task is for its owner only");
    return false;
}

void route_request(void *context, struct api_request *request)
{
    struct http *http = context;
    struct array_tasks array = {0};
    struct fault fault = {0};
    uint64_t id = api_request_id(request);
    bool is_array = !*api_request_name(request) &&
                    array_tasks_read(http->parts.store, id, NULL, &array) == 0;
    if (is_array) {
        if (is_owner(request, array.uid))
            reply_request(http, request, array.detail, -1);
        array_tasks_fini(&array);
        return;
    }
    id = http_request_task_id(http, request);
    json_t *record = http_find_record(http, request, id), *detail = NULL;
    if (!record)
        return;
    const json_t *index = json_object_get(record, "array_index");
    if (is_owner(request, http_record_owner(record))) {
        int r = job_read_detail(http->parts.store, id, &fault, &detail);
        if (r < 0)
            api_reply_error(request, 500, "%s", fault.text);
        else
            reply_request(http, request, detail,
                json_is_integer(index) ? (int)json_integer_value(index) : -1);
    }
    json_decref(detail);
    json_decref(record);
}
