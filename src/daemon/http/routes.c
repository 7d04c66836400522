/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the routes of docs/protocol.md, what they share, and the short ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "daemon/attempt_list.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/prometheus.h"
#include "daemon/http/public_json.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"

uint32_t owner_of(const json_t *record)
{
    return (uint32_t)json_integer_value(json_object_get(record, "uid"));
}

json_t *public_record(json_t *record)
{
    const char *evidence = json_string_value(json_object_get(record, "evidence"));
    const char *text = json_string_value(json_object_get(record, "reason_text"));
    json_t *shown = json_copy(record);
    json_object_set_new(shown, "evidence", json_null());
    json_object_set_new(shown, "command", json_null());
    if (text && evidence && strstr(text, evidence))
        json_object_set_new(shown, "reason_text", json_string(""));
    json_decref(record);
    return shown;
}

json_t *for_asker(const struct api_request *request, json_t *record)
{
    return may_touch(request, owner_of(record)) ? record : public_record(record);
}

void reply_task_noted(struct api_request *request, int status, json_t *record, const char *note)
{
    json_t *shown = for_asker(request, record);
    const char *text = *note ? note : NULL;
    api_reply(
        request, status, shown ? json_pack("{s:o, s:s*}", "task", shown, "note", text) : NULL);
}

void reply_task(struct api_request *request, json_t *record)
{
    reply_task_noted(request, 200, record, "");
}

uint64_t find_task_id(
    const struct http *http, uint64_t id, const char *index_text, struct array_tasks *array)
{
    int64_t index;
    if (!*index_text)
        return id;
    return parse_int64(index_text, 0, INT32_MAX, &index) < 0
               ? 0
               : array_tasks_find(http->parts.core, http->parts.store, id, (int)index, array);
}

uint64_t request_task_id(const struct http *http, const struct api_request *request)
{
    struct array_tasks array = {0};
    uint64_t id = find_task_id(http, api_request_id(request), api_request_name(request), &array);
    array_tasks_fini(&array);
    return id;
}

void set_no_task(struct fault *fault, uint64_t id, const char *index_text)
{
    fault_set(fault, ENOENT, "there is no task %llu%s%s", (unsigned long long)id,
        *index_text ? "_" : "", index_text);
}

void reply_no_task(struct api_request *request, uint64_t id)
{
    struct fault fault;
    if (id == 0)
        set_no_task(&fault, api_request_id(request), api_request_name(request));
    else
        set_no_task(&fault, id, "");
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

json_t *find_record(struct http *http, struct api_request *request, uint64_t id)
{
    struct fault fault = {0};
    json_t *record = NULL;
    int r = http_read_record(http, id, &fault, &record);
    if (r == STORE_NONE)
        reply_no_task(request, id);
    else if (r < 0)
        api_reply_error(request, 500, "%s", fault.text);
    return r == 0 ? record : NULL;
}

/* ---- short ones ---- */

static void route_gpus(void *context, struct api_request *request)
{
    api_reply(request, 200, public_gpus(context));
}

/* By index or UUID; -1: there is none. */
static int find_gpu(const struct http *http, const char *name)
{
    struct gpu_report gpu;
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++)
        if (strcmp(gpu.info->index, name) == 0 || strcmp(gpu.info->uuid, name) == 0)
            return gpu.view < 0 ? -1 : (int)i;
    return -1;
}

/* After an Xid error a GPU takes no task until an administrator clears it; the log has which user
 * did. */
static void route_clear(void *context, struct api_request *request)
{
    struct http *http = context;
    uid_t uid = api_request_peer(request).uid;
    const char *name = "";
    struct fault fault = {0};
    const json_t *body = api_request_body(request);
    if (uid != 0 && uid != geteuid()) {
        api_reply_error(request, 403, "only root clears GPUs");
        return;
    }
    if (body && field_text(body, "gpu", 96, &fault, &name) < 0) {
        api_reply_error(request, 400, "%s", fault.text);
        return;
    }
    int gpu = find_gpu(http, name);
    if (gpu < 0) {
        api_reply_error(request, 404, "there is no GPU '%.80s'", name);
        return;
    }
    struct gpu_report report;
    gpus_report(http->parts.gpus, (size_t)gpu, &report);
    const char *trouble = report.sample->trouble.text;
    log_warning("GPU %s: cleared by user %u (%s)", report.info->index, (unsigned)uid,
        *trouble ? trouble : "nothing was wrong with it");
    api_reply(request, 200, json_pack("{s:s}", "cleared", report.info->index));
    gpus_clear_errors(http->parts.gpus, (size_t)gpu);
}

static void route_metrics(void *context, struct api_request *request)
{
    bool is_openmetrics = exposition_wants_openmetrics(api_request_header(request, "Accept"));
    char *text = prometheus_text(context, is_openmetrics);
    if (text)
        api_reply_bytes(request, exposition_type(is_openmetrics), text, strlen(text), NULL);
    else
        api_reply(request, 500, NULL);
    free(text);
}

static void route_info(void *context, struct api_request *request)
{
    api_reply(request, 200, public_info(context));
}

/* The user database has answered for the user of the request. A user has as many uids that are not
 * in it as /etc/subuid grants, and with each of them could take sessions and connections. */
static void on_visitor(void *context, const struct name *name)
{
    struct api_request *request = context;
    const struct http *http = api_request_context(request);
    struct api_peer peer = api_request_peer(request);
    struct fault fault = {0};
    char *url;
    if (peer.uid != 0 && peer.uid != geteuid() && name->state != NAME_KNOWN) {
        api_reply_error(request, 403, "user %u is not in the user database", (unsigned)peer.uid);
        return;
    }
    int r = http->parts.hooks.make_login(http->parts.hooks.context, &peer, &fault, &url);
    if (r < 0) {
        api_reply_error(request, r == -EPERM ? 409 : 503, "%s", fault.text);
        return;
    }
    api_reply(request, 200, json_pack("{s:s}", "url", url));
    free(url);
}

/* The kernel has identified the user, which gets the address of a login to the web page. */
static void route_web(void *context, struct api_request *request)
{
    struct http *http = context;
    names_ask_uid(http->parts.names, api_request_peer(request).uid, on_visitor, request);
}

static json_t *mean_seconds_json(int64_t sum_us, int64_t n)
{
    return n ? json_real((double)sum_us / 1e6 / (double)n) : json_null();
}

static void route_stats(void *context, struct api_request *request)
{
    struct http *http = context;
    struct store_totals totals;
    struct fault fault = {0};
    if (store_get_totals(http->parts.store, &fault, &totals) < 0) {
        api_reply_error(request, 500, "%s", fault.text);
        return;
    }
    const struct gpu_totals gpus = gpus_totals(http->parts.gpus);
    int64_t ended = 0;
    for (int state = TASK_COMPLETED; state < TASK_STATES; state++)
        ended += totals.tasks[state];
    api_reply(request, 200,
        json_pack("{s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:f}", "tasks_completed",
            (json_int_t)totals.tasks[TASK_COMPLETED], "tasks_failed",
            (json_int_t)(ended - totals.tasks[TASK_COMPLETED]), "oom", (json_int_t)totals.oom_count,
            "recovered", (json_int_t)totals.recovered, "total_s",
            (double)(totals.last_ended_wall_us - totals.first_submitted_wall_us) / 1e6,
            "avg_wait_s", mean_seconds_json(totals.wait_us, ended), "avg_exec_s",
            mean_seconds_json(totals.exec_us, ended), "avg_jct_s",
            mean_seconds_json(totals.jct_us, ended), "mean_smact", json_reading(gpus.mean_smact, 1),
            "energy_mj", gpus.energy_j / 1e6));
}

/* Routes that operators may use, each run by with_name. */
#define AFTER_NAME(route)                                                                          \
    static void named_##route(void *context, struct api_request *request)                          \
    {                                                                                              \
        with_name(context, request, route_##route);                                                \
    }

AFTER_NAME(cancel)
AFTER_NAME(cancel_many)
AFTER_NAME(hold)
AFTER_NAME(hold_many)
AFTER_NAME(move)
AFTER_NAME(release)
AFTER_NAME(release_many)
AFTER_NAME(requeue)
AFTER_NAME(reserve)
AFTER_NAME(resume)
AFTER_NAME(suspend)
AFTER_NAME(update)

const struct api_route http_routes[] = {
    {"POST", "/v1/tasks", route_submit},
    {"GET", "/v1/tasks", route_list},
    {"GET", "/v1/tasks/{id}", route_show},
    {"GET", "/v1/tasks/{id}/wait", route_wait},
    {"GET", "/v1/tasks/{id}/log", route_log},
    {"GET", "/v1/tasks/{id}/request", route_request},
    {"GET", "/v1/tasks/{id}/series", route_task_series},
    {"POST", "/v1/tasks/cancel", named_cancel_many},
    {"POST", "/v1/tasks/hold", named_hold_many},
    {"POST", "/v1/tasks/release", named_release_many},
    {"POST", "/v1/tasks/{id}/cancel", named_cancel},
    {"POST", "/v1/tasks/{id}/requeue", named_requeue},
    {"POST", "/v1/tasks/{id}/hold", named_hold},
    {"POST", "/v1/tasks/{id}/update", named_update},
    {"POST", "/v1/tasks/{id}/suspend", named_suspend},
    {"POST", "/v1/tasks/{id}/resume", named_resume},
    {"POST", "/v1/tasks/{id}/move", named_move},
    {"POST", "/v1/tasks/{id}/release", named_release},
    {"POST", "/v1/tasks/{id}/latency", route_latency},
    {"POST", "/v1/tasks/{id}/profile", route_profile},
    {"GET", "/v1/events", route_events},
    {"GET", "/v1/gpus", route_gpus},
    {"GET", "/v1/gpus/{name}/series", route_gpu_series},
    {"POST", "/v1/gpus/clear", route_clear},
    {"GET", "/v1/samples", route_samples},
    {"GET", "/v1/share", route_share},
    {"GET", "/v1/starts", route_starts},
    {"GET", "/v1/reservations", route_reservations},
    {"POST", "/v1/reservations", named_reserve},
    {"POST", "/v1/reservations/{id}/cancel", named_reserve},
    {"GET", "/v1/mps", route_mps},
    {"POST", "/v1/mps/start", route_mps_start},
    {"POST", "/v1/mps/stop", route_mps_stop},
    {"POST", "/v1/web", route_web},
    {"GET", "/v1/info", route_info},
    {"GET", "/v1/metrics", route_metrics},
    {"GET", "/v1/stats", route_stats},
    {"GET", "/v1/trace", route_trace},
    {NULL, NULL, NULL},
};
