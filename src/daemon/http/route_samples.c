/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/samples: the GPUs' samples of the last time as rows, which the recorder's thread reads.
 * The setting `samples` says how far back they go and in which steps: with 1s:1h,10s:1d each second
 * of the last hour, and each ten seconds of the last day.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/routes.h"

enum { SINCE_USUAL_S = 3600 };

static void on_rows(void *context, char *text, const struct fault *fault)
{
    struct api_request *request = context;
    if (text)
        api_reply_text(request, 200, text);
    else
        api_reply_error(request, 500, "the samples cannot be read: %s", fault->text);
    http_serve_soon(api_request_context(request));
}

/* The finest ring that goes back so far, or the longest one. */
static const struct samples_ring *find_ring(const struct samples_kept *kept, int64_t back_us)
{
    const struct samples_ring *longest = &kept->rings[0];
    for (size_t i = 0; i < kept->n; i++) {
        if (kept->rings[i].keep_us >= back_us)
            return &kept->rings[i];
        if (kept->rings[i].keep_us > longest->keep_us)
            longest = &kept->rings[i];
    }
    return longest;
}

/* Whole steps only: the present one would be a mean of some of its samples. */
static void set_times(
    struct metric_query *query, const struct samples_ring *ring, int64_t back_us, int64_t now_us)
{
    int64_t begin_us = now_us - (back_us < ring->keep_us ? back_us : ring->keep_us);
    query->step_ms = ring->step_us / MS_US > 0 ? ring->step_us / MS_US : 1;
    query->until_ms = now_us / MS_US / query->step_ms * query->step_ms;
    query->since_ms = (begin_us / MS_US + query->step_ms - 1) / query->step_ms * query->step_ms;
}

static void start_query(struct http *http, struct api_request *request, double since_s)
{
    const struct samples_kept *kept = &http->parts.config->samples;
    struct metric_query *query = series_query_create(http);
    char *head = strdup("");
    struct fault fault = {0};
    if (query && head) {
        query->as_rows = true;
        if (kept->n > 0)
            set_times(query, find_ring(kept, (int64_t)(since_s * 1e6)), (int64_t)(since_s * 1e6),
                clock_wall_us());
        if (kept->n > 0 && metric_recorder_ask(http->parts.metrics, query, head, on_rows, request))
            return;
        query->n_gpus = 0; /* none are recorded */
        on_rows(request, metric_rows_run(NULL, query, &fault), &fault);
    } else {
        api_reply(request, 500, NULL);
    }
    free(query);
    free(head);
}

void route_samples(void *context, struct api_request *request)
{
    const char *since = api_request_query(request, "since_s");
    double since_s = SINCE_USUAL_S;
    if (since && parse_double(since, 0, 1e9, &since_s) < 0)
        api_reply_error(request, 400, "since_s=%.40s: a number of seconds", since);
    else
        start_query(context, request, since_s);
}
