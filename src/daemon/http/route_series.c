/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/tasks/ID/series and GET /v1/gpus/NAME/series: metrics over time. The recorder's thread
 * makes the answer; here the query is read, and values that the thread does not have are added.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/routes.h"
#include "daemon/metric_names.h"

#define SINCE_USUAL_MS 3600000 /* of GPUs */
#define MOMENT_MAX_S   1e12
#define STEP_MAX_S     1e7

struct metric_query *series_query_create(const struct http *http)
{
    struct gpu_report gpu;
    size_t n = 0;
    while (gpus_report(http->parts.gpus, n, &gpu))
        n++;
    struct metric_query *query = calloc(1, sizeof *query + n * sizeof query->gpus[0]);
    if (!query)
        return NULL;
    for (size_t i = 0; i < n && gpus_report(http->parts.gpus, i, &gpu); i++) {
        struct metric_gpu *listed = &query->gpus[query->n_gpus];
        if (gpu.view < 0)
            continue;
        snprintf(listed->uuid, sizeof listed->uuid, "%s", gpu.info->uuid);
        snprintf(listed->index, sizeof listed->index, "%s", gpu.info->index);
        query->n_gpus++;
    }
    query->only_gpu = query->n_gpus;
    return query;
}

/* Query parameter `name` in seconds, into milliseconds; unchanged if it is absent. */
static int read_seconds(
    struct api_request *request, const char *name, double max, struct fault *fault, int64_t *ret_ms)
{
    const char *text = api_request_query(request, name);
    double seconds;
    if (!text)
        return 0;
    if (parse_double(text, 0, max, &seconds) < 0)
        return fault_set(fault, EINVAL, "%s=%.40s: must be a number of seconds", name, text);
    *ret_ms = (int64_t)(seconds * 1e3);
    return 0;
}

static int read_flag(
    struct api_request *request, const char *name, struct fault *fault, bool *ret_flag)
{
    const char *text = api_request_query(request, name);
    if (text && strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return fault_set(fault, EINVAL, "%s=%.20s: must be yes or no", name, text);
    if (text)
        *ret_flag = strcmp(text, "yes") == 0;
    return 0;
}

static int read_metrics(
    struct api_request *request, struct fault *fault, struct metric_query *query)
{
    const char *list = api_request_query(request, "metric");
    size_t length;
    if (!list)
        return 0;
    const char *unknown = metric_find_unknown(list, &length);
    bool is_long = strlen(list) >= sizeof query->metrics;
    if (unknown || is_long) {
        struct span wrong = unknown ? (struct span){unknown, length} : span_of(list);
        return fault_set(fault, EINVAL,
            "metric=%.*s: must be names of metrics, comma-separated (docs/protocol.md lists them)",
            wrong.size < 40 ? (int)wrong.size : 40, wrong.at);
    }
    snprintf(query->metrics, sizeof query->metrics, "%s", list);
    return 0;
}

static int read_query(struct api_request *request, struct fault *fault, struct metric_query *query)
{
    int64_t now_ms = clock_wall_us() / 1000;
    query->with_range = true;
    query->since_ms = query->task ? 0 : now_ms - SINCE_USUAL_MS;
    query->until_ms = now_ms + 1;
    int r = read_metrics(request, fault, query);
    if (r == 0)
        r = read_seconds(request, "since", MOMENT_MAX_S, fault, &query->since_ms);
    if (r == 0)
        r = read_seconds(request, "until", MOMENT_MAX_S, fault, &query->until_ms);
    if (r == 0)
        r = read_seconds(request, "step_s", STEP_MAX_S, fault, &query->step_ms);
    if (r == 0)
        r = read_flag(request, "range", fault, &query->with_range);
    if (r == 0)
        r = read_flag(request, "tasks", fault, &query->with_tasks);
    if (r == 0 && query->since_ms >= query->until_ms)
        r = fault_set(fault, EINVAL, "since must be before until");
    return r;
}

/* A request whose query the recorder's thread runs. */
struct pending {
    struct api_request *request;
    char key[SERIES_CACHE_KEY_SIZE]; /* under which its answer is kept; "": it is not */
};

static void on_answer(void *context, char *text, const struct fault *fault)
{
    struct pending *pending = context;
    struct api_request *request = pending->request;
    struct http *http = api_request_context(request);
    if (text && *pending->key)
        series_cache_keep(&http->series_cache, pending->key, text, clock_monotonic_us());
    if (text)
        api_reply_text(request, 200, text);
    else
        api_reply_error(request, 503, "the metrics cannot be read: %s", fault->text);
    free(pending);
    http_serve_soon(http);
}

/* The key of a query of GPUs until now; "" for others, whose answers differ. */
static void write_key(
    struct api_request *request, const struct metric_query *query, char key[SERIES_CACHE_KEY_SIZE])
{
    key[0] = '\0';
    if (query->task || api_request_query(request, "until") || !api_request_query(request, "since"))
        return;
    snprintf(key, SERIES_CACHE_KEY_SIZE, "%zu/%zu %d %d %lld %lld %s", query->only_gpu,
        query->n_gpus, query->with_tasks, query->with_range, (long long)query->since_ms,
        (long long)query->step_ms, query->metrics);
}

/* Answers from the cache, or asks the recorder. Returns whether query and head were taken over. */
static bool answer_query(
    struct http *http, struct api_request *request, struct metric_query *query, char *head)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending) {
        api_reply(request, 500, NULL);
        return false;
    }
    pending->request = request;
    write_key(request, query, pending->key);
    const char *known = *pending->key ? series_cache_find(
                                            &http->series_cache, pending->key, clock_monotonic_us())
                                      : NULL;
    if (known) {
        free(pending);
        api_reply_text(request, 200, strdup(known));
        return false;
    }
    if (metric_recorder_ask(http->parts.metrics, query, head, on_answer, pending))
        return true;
    free(pending);
    api_reply_error(request, 404, "no metrics are recorded here (setting metrics-size)");
    return false;
}

/* Takes over query and head, either of which may be NULL when memory is out. */
static void start_query(
    struct http *http, struct api_request *request, struct metric_query *query, char *head)
{
    struct fault fault = {0};
    if (!query || !head)
        api_reply(request, 500, NULL);
    else if (read_query(request, &fault, query) < 0)
        api_reply_error(request, 400, "%s", fault.text);
    else if (answer_query(http, request, query, head))
        return;
    free(query);
    free(head);
}

/* The members that only the loop knows: "task":12,"attempts":[...] */
static char *task_head(const json_t *record, uint64_t task)
{
    char *head = NULL, *attempts = json_dumps(json_object_get(record, "attempts"), API_JSON_FLAGS);
    if (asprintf(&head, "\"task\":%llu,\"attempts\":%s", (unsigned long long)task,
            attempts ? attempts : "[]") < 0)
        head = NULL;
    free(attempts);
    return head;
}

void route_task_series(void *context, struct api_request *request)
{
    struct http *http = context;
    uint64_t id = http_request_task_id(http, request);
    json_t *record = http_find_record(http, request, id);
    if (!record)
        return;
    struct metric_query *query = series_query_create(http);
    char *head = task_head(record, id);
    json_decref(record);
    if (query)
        query->task = id;
    start_query(http, request, query, head);
}

/* By index or UUID, or "all". */
static int find_gpus(const char *name, struct metric_query *query)
{
    if (strcmp(name, "all") == 0)
        return 0;
    for (size_t i = 0; i < query->n_gpus; i++) {
        if (strcmp(query->gpus[i].index, name) != 0 && strcmp(query->gpus[i].uuid, name) != 0)
            continue;
        query->only_gpu = i;
        return 0;
    }
    return -ENOENT;
}

void route_gpu_series(void *context, struct api_request *request)
{
    struct http *http = context;
    const char *name = api_request_name(request);
    struct metric_query *query = series_query_create(http);
    if (query && find_gpus(name, query) < 0) {
        free(query);
        api_reply_error(request, 404, "there is no GPU '%.80s'", name);
        return;
    }
    start_query(http, request, query, strdup("\"task\":null"));
}
