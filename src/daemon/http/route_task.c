/* SPDX-License-Identifier: Apache-2.0 */
/* One task: GET /v1/tasks/ID with its events, and the changes that its owner, root and
 * operators may make. */
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "base/units.h"
#include "core/sharing_choice.h"
#include "daemon/http/routes.h"
#include "daemon/http/task_change.h"
#include "daemon/overrun.h"
#include "policy/policies.h"
#include "taskfile/description.h"

struct story {
    struct http *http;
    json_t *events;
    json_t *submit_detail;
    uint64_t id;
    enum failure_class failure; /* of the last EXITED */
};

static void place_text(const struct story *story, const struct event *event, FILE *out)
{
    const struct cluster_view *view = core_view(story->http->parts.core);
    const struct sharing_mode *share = &event->place.share;
    char size[32];
    fputs("GPU", out);
    for (int i = 0; i < event->place.n; i++) {
        int gpu = event->place.gpus[i];
        fprintf(out, "%s%s", i ? "," : " ", gpu < view->n_gpus ? view->gpus[gpu].id.label : "?");
    }
    fprintf(
        out, ", %s%s", sharing_name(share->sharing), event->place.exclusive ? ", to itself" : "");
    if (share->thread_percent)
        fprintf(out, ", %d %% of the SMs", share->thread_percent);
    if (share->mem_limit_bytes)
        fprintf(out, ", at most %s", format_size(share->mem_limit_bytes, size, sizeof size));
    if (share->reason != SHARE_AS_ASKED)
        fprintf(out, ": %s", sharing_reason_text(share->reason));
}

static void exit_text(const struct event *event, const json_t *detail, FILE *out)
{
    const char *evidence = json_string_value(json_object_get(detail, "evidence"));
    double limit = json_number_value(json_object_get(detail, "mem_limit_bytes"));
    char size[32];
    if (event->exited.failure == FAILURE_NONE)
        fprintf(out, "exit code %d", event->exited.code);
    else
        fputs(failure_name(event->exited.failure), out);
    if (limit > 0)
        fprintf(out, " under its own limit of %s", format_size((int64_t)limit, size, sizeof size));
    if (evidence && *evidence)
        fprintf(out, ": %s", evidence);
    const json_t *overruns = json_object_get(detail, "overruns");
    if (json_array_size(overruns)) {
        fputs("; ", out);
        overruns_write(out, overruns);
    }
}

/* "time limit 2:00:00, priority high" */
static void update_text(const struct event *event, const json_t *detail, FILE *out)
{
    const struct task_update *update = &event->update;
    const char *name = json_string_value(json_object_get(detail, "name"));
    char text[64];
    int n = 0;
    if (update->sets_time_limit && ++n)
        fprintf(out, "time limit %s", format_elapsed(update->time_limit_us, text, sizeof text));
    if (update->sets_priority)
        fprintf(out, "%spriority %s", n++ ? ", " : "", priority_name(update->priority));
    if (update->sets_need)
        fprintf(out, "%smemory %s", n++ ? ", " : "",
            format_size(update->need.bytes, text, sizeof text));
    if (update->host.cpus)
        fprintf(out, "%s%d CPUs", n++ ? ", " : "", update->host.cpus);
    if (update->host.memory_bytes)
        fprintf(out, "%smain memory %s", n++ ? ", " : "",
            format_size(update->host.memory_bytes, text, sizeof text));
    if (update->sets_begin)
        fprintf(out, "%sbegin", n++ ? ", " : "");
    if (update->sets_after && update->n_after == 0)
        fprintf(out, "%sits dependencies hold", n++ ? ", " : "");
    for (int i = 0; i < update->n_after; i++)
        fprintf(out, "%safter %s", n++ ? ", " : "",
            dependency_format(&update->after[i], text, sizeof text));
    if (name)
        fprintf(out, "%sname %s", n ? ", " : "", name);
}

static const char *requeue_text(enum failure_class failure)
{
    if (failure == FAILURE_REQUEUED)
        return "it was ended to be run again";
    return failure == FAILURE_GPU_GONE
               ? "its GPU or MIG instance is gone"
               : "its MPS server failed it, or a fault of one of the server's clients";
}

static const char *suspension_text(const struct event *event, const json_t *detail)
{
    const char *why = json_string_value(json_object_get(detail, "why"));
    return why ? why : suspension_failure_name(event->suspension_failed.why);
}

/* A trial of an array with a stop rule reports, or is stopped. */
static void trial_text(const struct event *event, FILE *out)
{
    if (event->kind == EVENT_STOP)
        fprintf(out, "rank %d of %d at rung %d: it is ended", event->stop.rank, event->stop.of,
            event->stop.rung + 1);
    else if (event->metric.value.valid)
        fprintf(out, "%g at rung %d", event->metric.value.value, event->metric.rung + 1);
    else
        fprintf(out, "no finite number at rung %d: the worst", event->metric.rung + 1);
}

static void write_event(
    const struct story *story, const struct event *event, const json_t *detail, FILE *out)
{
    char text[64];
    switch (event->kind) {
    case EVENT_PLACE:
        place_text(story, event, out);
        break;
    case EVENT_STARTED:
        if (event->started.by_streams)
            fputs("time-sliced: MPS could not be had", out);
        break;
    case EVENT_EXITED:
        exit_text(event, detail, out);
        break;
    case EVENT_RUN_AGAIN:
        if (event->run_again_bytes)
            fprintf(out, "too little GPU memory was free for it: it is run again with %s reserved",
                format_size(event->run_again_bytes, text, sizeof text));
        break;
    case EVENT_REQUEUE:
        fputs(requeue_text(story->failure), out);
        break;
    case EVENT_RESTART:
        fputs("the service has ended: it is started again", out);
        break;
    case EVENT_METRIC:
    case EVENT_STOP:
        trial_text(event, out);
        break;
    case EVENT_EVICT:
        fputs("its GPU is gone, or it cannot be resumed: it is ended", out);
        break;
    case EVENT_SUSPENDED:
    case EVENT_RESUMED:
    case EVENT_MOVED:
        fprintf(out, "%.1f s", (double)event->yielded.took_us / 1e6);
        break;
    case EVENT_IDLE:
        fprintf(out, "it has not used its GPUs for %s",
            format_elapsed(event->idle_us, text, sizeof text));
        break;
    case EVENT_SUSPENSION_FAILED:
        fprintf(out, "%s", suspension_text(event, detail));
        break;
    case EVENT_UPDATE:
        update_text(event, detail, out);
        break;
    case EVENT_DEPENDENCY:
        fprintf(out, "%s %s", dependency_format(&event->dependency.dependency, text, sizeof text),
            event->dependency.holds ? "holds" : "can never hold");
        break;
    case EVENT_END:
        fputs(task_state_word(event->end), out);
        break;
    default:
        break;
    }
}

static json_t *event_text(
    const struct story *story, const struct event *event, const json_t *detail)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return json_string("");
    write_event(story, event, detail, out);
    fclose(out);
    json_t *string = json_string(text);
    free(text);
    return string ? string : json_string("");
}

static int on_story(void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    struct story *story = context;
    if (event->kind == EVENT_METRIC && event->metric.task != story->id)
        return 0; /* of another task of its array */
    if (event->kind == EVENT_STEP)
        return 0; /* the member srun_steps has them */
    if (event->kind == EVENT_EXITED)
        story->failure = event->exited.failure;
    if (event->kind == EVENT_SUBMIT && !story->submit_detail)
        story->submit_detail = json_incref((json_t *)(uintptr_t)detail);
    json_array_append_new(
        story->events, json_pack("{s:f, s:s, s:o}", "at", (double)wall_us / 1e6, "event",
                           event_name(event->kind), "text", event_text(story, event, detail)));
    return 0;
}

static void add_script(struct http *http, json_t *record, const json_t *detail)
{
    const char *key = json_string_value(json_object_get(detail, "script"));
    char *script;
    size_t size;
    if (key && store_get_blob(http->parts.store, key, NULL, &script, &size) == 0) {
        json_object_set_new(record, "script", json_stringn(script, size));
        free(script);
    }
}

static void copy_detail(json_t *record, const json_t *detail, const char *key)
{
    json_t *value = json_object_get(detail, key);
    json_object_set_new(record, key, value ? json_incref(value) : json_null());
}

/* What only the owner and root may see. */
/* What an update has changed since the submission. */
static void add_host_now(const struct http *http, json_t *record, uint64_t id)
{
    const struct task *task = core_task(http->parts.core, id);
    const struct host_resources *host = task ? &task->request.host : NULL;
    if (host && host->cpus)
        json_object_set_new(record, "cpus", json_integer(host->cpus));
    if (host && host->memory_bytes)
        json_object_set_new(record, "host_memory_mib", json_integer(host->memory_bytes / MIB));
}

static void add_private(struct http *http, json_t *record, uint64_t id)
{
    static const char *const kept[] = {"arguments", "cwd", "summary_name", "output", "error"};
    struct story story = {.http = http, .id = id, .events = json_array()};
    struct fault fault = {0};
    if (store_task_events(http->parts.store, id, policy_find, on_story, &story, &fault) < 0) {
        log_error("%s", fault.text);
        json_object_set_new(record, "damaged", json_string(fault.text));
    }
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        copy_detail(record, story.submit_detail, kept[i]);
    for (size_t i = 0; i < task_option_count; i++)
        if (task_options[i].shown_as)
            copy_detail(record, story.submit_detail, task_options[i].field);
    add_host_now(http, record, id);
    add_script(http, record, story.submit_detail);
    json_object_set_new(record, "events", story.events);
    json_decref(story.submit_detail);
}

void route_show(void *context, struct api_request *request)
{
    struct http *http = context;
    if (array_was_shown(http, request))
        return;
    uint64_t id = http_request_task_id(http, request);
    json_t *record = http_find_record(http, request, id);
    if (!record)
        return;
    if (may_touch(request, http_record_owner(record)))
        add_private(http, record, id);
    http_reply_task(request, record);
}

/* ---- changes ---- */

static void change_task(
    struct http *http, struct api_request *request, enum event_kind kind, const char *verb)
{
    const struct task_change_request wanted = {http, kind, verb, api_request_peer(request).uid};
    json_t *detail = author_detail(http, wanted.uid);
    const struct event of_each = {.kind = kind};
    bool is_array = array_was_changed(http, request, &of_each, detail, verb);
    json_decref(detail);
    if (is_array)
        return;
    struct task_change change = {.task = http_request_task_id(http, request)};
    json_t *record;
    if (change.task == 0) {
        http_reply_no_task(request, 0);
        return;
    }
    task_change_feed(&wanted, &change);
    task_change_settle(&wanted, &change);
    if (change.status / 100 != 2)
        api_reply_error(request, change.status, "%s", change.message.text);
    else if ((record = http_find_record(http, request, change.task)))
        http_reply_task_noted(request, change.status, record, change.message.text);
}

void route_cancel(void *context, struct api_request *request)
{
    change_task(context, request, EVENT_CANCEL, "cancelled");
}

void route_requeue(void *context, struct api_request *request)
{
    change_task(context, request, EVENT_RUN_AGAIN, "requeued");
}

void route_hold(void *context, struct api_request *request)
{
    change_task(context, request, EVENT_HOLD, "held");
}

void route_release(void *context, struct api_request *request)
{
    change_task(context, request, EVENT_RELEASE, "released");
}
