/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks/ID/update: changes the request of a task, or of all tasks of an array whose state
 * allows it. The body has some of the keys of a submission. The core decides what a task's state
 * allows (core/state/apply_update.c); only the owner, root and operators may send the request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "daemon/dependencies.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"
#include "daemon/http/task_change.h"
#include "taskfile/description.h"

static const enum task_option changeable[] = {TASK_TIME, TASK_PRIORITY, TASK_NAME, TASK_MEMORY,
    TASK_BEGIN, TASK_AFTER, TASK_CPUS, TASK_HOST_MEMORY};

struct update {
    struct option_value options[TASK_OPTION_MAX];
    struct dependency after[DEPENDENCIES_MAX];
    struct event event;
    json_t *detail;
};

/* ---- the body ---- */

static int check_keys(const json_t *body, struct fault *fault)
{
    const char *key;
    json_t *value;
    if (!json_is_object(body) || json_object_size(body) == 0)
        return fault_set(fault, EINVAL, "the body has to be a JSON object with what to change");
    json_object_foreach((json_t *)(uintptr_t)body, key, value) {
        bool found = false;
        for (size_t i = 0; i < ARRAY_SIZE(changeable); i++)
            found |= strcmp(task_options[changeable[i]].field, key) == 0;
        if (!found)
            return fault_set(
                fault, EINVAL, "%.40s: cannot be changed (docs/protocol.md lists what can)", key);
    }
    return 0;
}

static int read_after(
    struct http *http, struct update *update, struct task_update *changes, struct fault *fault)
{
    struct dependency_term terms[DEPENDENCIES_MAX];
    int n = dependency_parse(update->options[TASK_AFTER].text, fault, terms);
    changes->sets_after = true;
    changes->after = update->after;
    return n < 0 ? n
                 : dependencies_resolve(http->parts.core, http->parts.store, terms, n, NULL, 0,
                       update->after, &changes->n_after, fault);
}

static int read_changes(struct http *http, struct update *update, struct fault *fault)
{
    const struct option_value *options = update->options;
    struct task_update *changes = &update->event.update;
    int64_t now_us = driver_now_us(http->parts.driver);
    int64_t begin_us = options[TASK_BEGIN].number - driver_wall_us(http->parts.driver, now_us);
    changes->sets_time_limit = options[TASK_TIME].set;
    changes->time_limit_us = options[TASK_TIME].number;
    changes->sets_priority = options[TASK_PRIORITY].set;
    if (changes->sets_priority)
        priority_parse(options[TASK_PRIORITY].text, &changes->priority);
    changes->sets_need = options[TASK_MEMORY].set;
    if (changes->sets_need)
        changes->need = (struct need){NEED_DECLARED, options[TASK_MEMORY].number};
    changes->sets_host = options[TASK_CPUS].set || options[TASK_HOST_MEMORY].set;
    if (options[TASK_CPUS].set)
        changes->host.cpus = (int)options[TASK_CPUS].number;
    if (options[TASK_HOST_MEMORY].set)
        changes->host.memory_bytes = options[TASK_HOST_MEMORY].number;
    changes->sets_begin = options[TASK_BEGIN].set;
    if (changes->sets_begin && begin_us > 0)
        changes->begin_us = now_us + begin_us;
    return options[TASK_AFTER].set ? read_after(http, update, changes, fault) : 0;
}

static int read_update(
    struct http *http, struct api_request *request, struct update *update, struct fault *fault)
{
    const json_t *body = api_request_body(request);
    const char *name = NULL;
    int r = check_keys(body, fault);
    for (size_t i = 0; i < ARRAY_SIZE(changeable) && r == 0; i++)
        r = field_option(
            body, &task_options[changeable[i]], fault, &update->options[changeable[i]]);
    if (r == 0)
        r = read_changes(http, update, fault);
    name = option_text_or(&update->options[TASK_NAME], NULL);
    update->detail = author_detail(http, api_request_peer(request).uid);
    if (name && *name)
        json_object_set_new(update->detail, "name", json_string(name));
    return r;
}

/* ---- the change ---- */

static void update_task(
    struct http *http, struct api_request *request, uint64_t id, struct update *update)
{
    struct driver *driver = http->parts.driver;
    struct fault fault = {0};
    update->event.task = id;
    update->event.time_us = driver_now_us(driver);
    int r = http_check_change(http, api_request_peer(request).uid, &update->event, &fault);
    if (r == 0)
        r = core_check_update(http->parts.core, id, &update->event.update, &fault);
    if (r < 0) {
        api_reply_error(request, r == -EINVAL ? 400 : 409, "%s", fault.text);
        return;
    }
    driver_feed(driver, &update->event, update->detail);
    http_apply_limits(http, &update->event, &fault);
    if (update->event.update.sets_after)
        dependencies_catch_up(http->parts.core, http->parts.store, driver, id, id);
    json_t *now = http_find_record(http, request, id);
    if (now)
        http_reply_task_noted(request, 200, now, fault.text);
}

/* Answers unless the request may be carried out. */
static bool is_refused(struct http *http, struct api_request *request, const struct update *update)
{
    const struct task_update *changes = &update->event.update;
    bool raises = changes->sets_priority && changes->priority > PRIORITY_NORMAL;
    if (driver_log_is_broken(http->parts.driver))
        api_reply_error(request, 507, "the event log cannot be written at the moment");
    else if (raises && !may_administrate(http, api_request_peer(request).uid))
        api_reply_error(request, 403,
            "priority=%s: only root and operators may have a priority above normal (the setting "
            "operators names them)",
            priority_name(changes->priority));
    else
        return false;
    return true;
}

static void update_one(
    struct http *http, struct api_request *request, uint64_t id, struct update *update)
{
    json_t *record = http_find_record(http, request, id);
    if (!record)
        return;
    bool is_allowed = may_change(http, api_request_peer(request).uid, http_record_owner(record));
    struct fault fault = {0};
    json_decref(record);
    set_not_yours(&fault, "task", id);
    if (!is_allowed)
        api_reply_error(request, 403, "%s", fault.text);
    else if (!is_refused(http, request, update))
        update_task(http, request, id, update);
}

/* The tasks of an array have ids above its own. */
static uint64_t first_of_array(const struct http *http, const struct api_request *request)
{
    const struct task *task = core_next_task(http->parts.core, api_request_id(request));
    return task && task->array.id == api_request_id(request) ? task->id : 0;
}

void route_update(void *context, struct api_request *request)
{
    struct http *http = context;
    struct fault fault = {0};
    struct update *update = calloc(1, sizeof *update);
    if (!update) {
        api_reply(request, 500, NULL);
        return;
    }
    update->event.kind = EVENT_UPDATE;
    uint64_t first = *api_request_name(request) ? 0 : first_of_array(http, request);
    uint64_t id = first ? first : http_request_task_id(http, request);
    int r = read_update(http, request, update, &fault);
    update->event.update.may_raise = may_administrate(http, api_request_peer(request).uid);
    if (r < 0)
        api_reply_error(request, 400, "%s", fault.text);
    else if (!first)
        update_one(http, request, id, update);
    else if (!is_refused(http, request, update))
        array_was_changed(http, request, &update->event, update->detail, "changed");
    json_decref(update->detail);
    option_values_fini(update->options, TASK_OPTION_MAX);
    free(update);
}
