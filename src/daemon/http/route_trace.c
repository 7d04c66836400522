/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/trace: what ran here, for Perfetto (chrome_trace.c).
 *
 *     GPUs -> tasks, in slices (listing.h) -> counters, one GPU after the other -> answer
 *
 * The recorder's thread reads a GPU's metrics while the loop does other things. Adding them takes
 * the loop some milliseconds, which POINTS bounds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/http/chrome_trace.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/listing.h"
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"

#define MOMENT_MAX_S  1e12
#define SINCE_USUAL_S 86400.0 /* before now */
enum {
    TASKS_MAX = 100000, /* ended ones; chosen */
    POINTS = 2000,      /* of each counter; chosen: more than a screen has columns */
    POINTS_ALL = 200000 /* of all counters together; chosen: 20 MB of text */
};

/* A trace that is being made. */
struct tracing {
    struct http *http;
    struct api_request *request;
    struct chrome_trace *trace;
    double since, until; /* seconds since 1970 */
    size_t next_gpu;     /* whose counters come next */
    size_t held;         /* bytes of the quota */
    char note[600];      /* its missing parts; "": none */
};

static void tracing_free(struct tracing *tracing)
{
    chrome_trace_free(tracing->trace);
    free(tracing);
}

static void answer_trace(struct tracing *tracing)
{
    api_reply_held_text(tracing->request, 200, chrome_trace_end(tracing->trace, tracing->note));
    http_serve_soon(tracing->http);
    tracing_free(tracing);
}

/* ---- counters ---- */

static bool hold_counters(struct tracing *tracing)
{
    size_t size = chrome_trace_size(tracing->trace), more = size - tracing->held;
    tracing->held = size;
    return api_request_hold(tracing->request, more);
}

static void add_counters(struct tracing *tracing, char *text)
{
    json_t *answer = json_loads(text, 0, NULL), *series;
    size_t i;
    json_array_foreach(json_object_get(answer, "series"), i, series) {
        chrome_trace_add_series(tracing->trace, series);
    }
    json_decref(answer);
    free(text);
}

static void ask_next_gpu(struct tracing *tracing);

static void on_counters(void *context, char *text, const struct fault *fault)
{
    struct tracing *tracing = context;
    if (text)
        add_counters(tracing, text);
    else
        snprintf(tracing->note, sizeof tracing->note, "it lacks counters: %s", fault->text);
    if (!hold_counters(tracing)) { /* it was answered with the limit that is reached */
        http_serve_soon(tracing->http);
        tracing_free(tracing);
    } else if (text) {
        ask_next_gpu(tracing);
    } else {
        answer_trace(tracing);
    }
}

static int64_t step_ms_of(const struct tracing *tracing, size_t n_gpus)
{
    size_t fit = POINTS_ALL / CHROME_TRACE_METRIC_COUNT / n_gpus;
    double points = fit < POINTS ? (double)(fit ? fit : 1) : POINTS;
    return (int64_t)((tracing->until - tracing->since) * 1e3 / points);
}

/* Asks for the counters of the next GPU, or answers. */
static void ask_next_gpu(struct tracing *tracing)
{
    struct metric_query *query = series_query_create(tracing->http);
    char *head = strdup("\"task\":null");
    if (!query || !head) {
        snprintf(tracing->note, sizeof tracing->note, "it lacks counters: out of memory");
    } else if (tracing->next_gpu < query->n_gpus) {
        query->only_gpu = tracing->next_gpu++;
        query->since_ms = (int64_t)(tracing->since * 1e3);
        query->until_ms = (int64_t)(tracing->until * 1e3);
        query->step_ms = step_ms_of(tracing, query->n_gpus);
        snprintf(query->metrics, sizeof query->metrics, "%s", CHROME_TRACE_METRICS);
        if (metric_recorder_ask(tracing->http->parts.metrics, query, head, on_counters, tracing))
            return;
        snprintf(tracing->note, sizeof tracing->note,
            "it has no counters: no metrics are recorded here (setting metrics-size)");
    }
    free(query);
    free(head);
    answer_trace(tracing);
}

/* ---- tasks ---- */

static size_t add_task(void *context, const json_t *record)
{
    struct tracing *tracing = context;
    chrome_trace_add_task(tracing->trace, record);
    return tracing->held = chrome_trace_size(tracing->trace);
}

static void on_listed(void *context, const struct listing *list, bool is_listed)
{
    struct tracing *tracing = context;
    if (!is_listed) {
        tracing_free(tracing);
        return;
    }
    if (!listing_is_complete(list) || list->ended_left <= 0)
        snprintf(tracing->note, sizeof tracing->note, "it has the last %d ended tasks only",
            (int)TASKS_MAX);
    else if (list->damaged)
        snprintf(tracing->note, sizeof tracing->note,
            "records of %d ended tasks are damaged: `colloc check` says more", list->damaged);
    ask_next_gpu(tracing);
}

static const struct listing_receiver trace_receiver = {add_task, on_listed};

/* ---- the query ---- */

static int read_moment(
    struct api_request *request, const char *name, struct fault *fault, double *ret_s)
{
    const char *text = api_request_query(request, name);
    if (!text || parse_double(text, 0, MOMENT_MAX_S, ret_s) == 0)
        return 0;
    return fault_set(fault, EINVAL, "%s=%.40s: must be seconds since 1970", name, text);
}

static int read_query(struct api_request *request, struct fault *fault, struct tracing *ret_tracing)
{
    const double now = (double)clock_wall_us() / 1e6;
    ret_tracing->since = now - SINCE_USUAL_S;
    ret_tracing->until = now;
    int r = read_moment(request, "since", fault, &ret_tracing->since);
    if (r == 0)
        r = read_moment(request, "until", fault, &ret_tracing->until);
    if (r == 0 && ret_tracing->since >= ret_tracing->until)
        r = fault_set(fault, EINVAL, "since must be before until");
    return r;
}

/* Takes over `tracing`, or returns -ENOMEM. */
static int start_tracing(struct tracing *tracing)
{
    json_t *answer = public_gpus(tracing->http), *gpu;
    struct listing *list = listing_create(
        tracing->http, tracing->request, &trace_receiver, tracing);
    size_t i;
    if (!list || !answer || listing_set_state(list, "all") < 0) {
        json_decref(answer);
        if (list)
            listing_free(list);
        return -ENOMEM;
    }
    json_array_foreach(json_object_get(answer, "gpus"), i, gpu) {
        chrome_trace_add_gpu(tracing->trace, gpu);
    }
    json_decref(answer);
    list->ended.since_wall_us = (int64_t)(tracing->since * 1e6);
    list->page_left = INT64_MAX;
    list->ended_left = TASKS_MAX;
    listing_start(list);
    return 0;
}

void route_trace(void *context, struct api_request *request)
{
    struct tracing *tracing = calloc(1, sizeof *tracing);
    struct fault fault = {0};
    if (tracing && read_query(request, &fault, tracing) < 0) {
        free(tracing);
        api_reply_error(request, 400, "%s", fault.text);
        return;
    }
    if (tracing)
        tracing->trace = chrome_trace_create(tracing->since, tracing->until);
    if (tracing && tracing->trace) {
        tracing->http = context;
        tracing->request = request;
        if (start_tracing(tracing) == 0)
            return;
        chrome_trace_free(tracing->trace);
    }
    free(tracing);
    api_reply(request, 500, NULL);
}
