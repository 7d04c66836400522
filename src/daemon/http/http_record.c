/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of tasks in answers. A live task is in the core, an ended one in the log; both have the
 * form of docs/protocol.md. Its owner and root see all of it, other users no command line and no
 * line of its log.
 */
#include "daemon/http/http_record.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "daemon/attempt_list.h"
#include "daemon/http/permission.h"

uint32_t http_record_owner(const json_t *record)
{
    return (uint32_t)json_integer_value(json_object_get(record, "uid"));
}

json_t *http_record_public(json_t *record)
{
    const char *evidence = json_string_value(json_object_get(record, "evidence"));
    const char *text = json_string_value(json_object_get(record, "reason_text"));
    json_t *shown = json_copy(record);
    json_object_set_new(shown, "evidence", json_null());
    json_object_set_new(shown, "command", json_null());
    json_object_set_new(shown, "srun_steps", json_array()); /* their names are those of programs */
    if (text && evidence && strstr(text, evidence))
        json_object_set_new(shown, "reason_text", json_string(""));
    json_decref(record);
    return shown;
}

json_t *http_record_for(const struct api_request *request, json_t *record)
{
    return may_touch(request, http_record_owner(record)) ? record : http_record_public(record);
}

void http_reply_task_noted(
    struct api_request *request, int status, json_t *record, const char *note)
{
    json_t *shown = http_record_for(request, record);
    const char *text = *note ? note : NULL;
    api_reply(
        request, status, shown ? json_pack("{s:o, s:s*}", "task", shown, "note", text) : NULL);
}

void http_reply_task(struct api_request *request, json_t *record)
{
    http_reply_task_noted(request, 200, record, "");
}

uint64_t http_find_task_id(
    const struct http *http, uint64_t id, const char *index_text, struct array_tasks *array)
{
    int64_t index;
    if (!*index_text)
        return id;
    return parse_int64(index_text, 0, INT32_MAX, &index) < 0
               ? 0
               : array_tasks_find(http->parts.core, http->parts.store, id, (int)index, array);
}

uint64_t http_request_task_id(const struct http *http, const struct api_request *request)
{
    struct array_tasks array = {0};
    uint64_t id = http_find_task_id(
        http, api_request_id(request), api_request_name(request), &array);
    array_tasks_fini(&array);
    return id;
}

void http_set_no_task(struct fault *fault, uint64_t id, const char *index_text)
{
    fault_set(fault, ENOENT,
        "there is no task %llu%s%s: `colloc queue` lists those that wait or run, `colloc history` "
        "those that have ended",
        (unsigned long long)id, *index_text ? "_" : "", index_text);
}

void http_reply_no_task(struct api_request *request, uint64_t id)
{
    struct fault fault;
    if (id == 0)
        http_set_no_task(&fault, api_request_id(request), api_request_name(request));
    else
        http_set_no_task(&fault, id, "");
    api_reply_error(request, 404, "%s", fault.text);
}

int http_read_record(struct http *http, uint64_t id, struct fault *fault, json_t **ret_record)
{
    const struct task *task = core_task(http->parts.core, id);
    if (task) {
        *ret_record = http_task_json(http, task);
        return *ret_record ? 0 : fault_set(fault, ENOMEM, "out of memory");
    }
    int r = store_get_ended(http->parts.store, id, fault, ret_record);
    if (r == 0)
        attempt_list_upgrade(*ret_record);
    return r;
}

json_t *http_find_record(struct http *http, struct api_request *request, uint64_t id)
{
    struct fault fault = {0};
    json_t *record = NULL;
    int r = http_read_record(http, id, &fault, &record);
    if (r == STORE_NONE)
        http_reply_no_task(request, id);
    else if (r < 0)
        api_reply_error(request, 500, "%s", fault.text);
    return r == 0 ? record : NULL;
}
