/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part's life, and the API's server in the loop.
 *
 * libmicrohttpd has one descriptor to poll and one timeout. When the descriptor is readable the
 * server runs until all that has arrived is read. Then one group of submissions is made durable
 * (submission_queue.c), and the loop continues: samples and ends of tasks are processed between two
 * groups.
 */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/server.h"
#include "base/clock.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/prometheus.h"
#include "daemon/http/routes.h"
#include "daemon/http/sliced_change.h"
#include "service/aligned_timer.h"
#include "service/estimate_helpers.h"
#include "service/socket_folder.h"

#define BODY_MAX        (16u << 20) /* bytes; chosen: the largest script and summary, as JSON */
#define IDLE_TIMEOUT_S  75          /* chosen: beyond the longest wait of docs/protocol.md */
#define GATHER_MAX_US   2000        /* chosen: no client notices it */
#define RUNS_MAX        16          /* chosen */
#define CONNECTIONS_MAX 256 /* of one user; chosen: a shell loop of submit --wait takes one each */

/* ---- the server in the loop ---- */

static void on_server_time(uv_timer_t *timer);

/* A request takes the server several runs. All requests that have arrived are read before
 * submissions are, which may take long. */
static void run_server(struct http *http)
{
    struct pollfd server = {.fd = api_server_fd(http->server), .events = POLLIN};
    api_server_run(http->server);
    for (int i = 0;
         i < RUNS_MAX && (api_server_timeout_ms(http->server) == 0 || poll(&server, 1, 0) > 0); i++)
        api_server_run(http->server);
}

/*
 * Clients that submit one task after the other send the next one shortly after the reply. If the
 * server waits for the same number of submissions as last time, but no longer than a commit took,
 * one commit serves several.
 */
static void gather_submissions(struct http *http)
{
    struct pollfd server = {.fd = api_server_fd(http->server), .events = POLLIN};
    int64_t until_us = clock_monotonic_us() + http->gather_us, left_us;
    while (
        http->n_submissions < http->submitters && (left_us = until_us - clock_monotonic_us()) > 0) {
        const struct timespec timeout = {.tv_nsec = left_us * 1000};
        if (ppoll(&server, 1, &timeout, NULL) <= 0)
            return;
        api_server_run(http->server);
    }
}

/* One group of submissions a turn: samples and ends of tasks have their turn too. */
static void write_submissions(struct http *http)
{
    gather_submissions(http);
    int came = http->n_submissions;
    int64_t before_us = clock_monotonic_us();
    submissions_flush(http);
    int64_t took_us = clock_monotonic_us() - before_us;
    http->gather_us = took_us < GATHER_MAX_US ? took_us : GATHER_MAX_US;
    int left = http->n_submissions;
    api_server_run(http->server);
    http->submitters = came + http->n_submissions - 2 * left;
}

static void turn_server(struct http *http)
{
    run_server(http);
    http->parts.hooks.served(http->parts.hooks.context);
    if (http->submissions_first)
        write_submissions(http);
    int64_t timeout_ms = http->submissions_first ? 0 : api_server_timeout_ms(http->server);
    if (timeout_ms > 0)
        uv_timer_start(&http->server_timer, on_server_time,
            aligned_earlier_ms(http->parts.loop, (uint64_t)timeout_ms), 0);
    else
        uv_timer_stop(&http->server_timer);
    if (timeout_ms == 0)
        http_serve_soon(http);
}

static void on_server_time(uv_timer_t *timer)
{
    turn_server(timer->data);
}

static void on_server_soon(uv_idle_t *soon)
{
    uv_idle_stop(soon);
    turn_server(soon->data);
}

static void on_server_ready(uv_poll_t *poll, int status, int events)
{
    turn_server(poll->data);
}

/* ---- users ---- */

/* A user about which a name service does not answer counts as unlisted. */
static bool counts_as_unlisted(const struct name *name)
{
    return name->uid != 0 && (name->state == NAME_NONE || name->state == NAME_NO_ANSWER);
}

static bool is_unlisted(void *context, uid_t uid)
{
    struct http *http = context;
    return counts_as_unlisted(names_of_uid(http->parts.names, uid));
}

void http_name_changed(struct http *http, const struct name *name)
{
    if (http->server)
        api_server_set_unlisted(http->server, name->uid, counts_as_unlisted(name));
}

const struct api_route *http_get_routes(void)
{
    return http_routes;
}

char *http_make_metrics(const struct http *http, bool is_openmetrics)
{
    return prometheus_text(http, is_openmetrics);
}

void http_task_ended(struct http *http, uint64_t task, const json_t *record)
{
    const struct task *ended = core_task(http->parts.core, task);
    if (ended && task_state_is_done(ended->state)) {
        http->ends.tasks[ended->state]++;
        http->ends.memory_crashes += ended->oom_count;
    }
    waiters_answer(http, task, record);
}

/* ---- life ---- */

struct http *http_create(const struct http_options *options)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return NULL;
    http->user_files = user_files_create(options->loop);
    http->estimate_helpers = estimate_helpers_create(options->loop, ESTIMATE_LIMIT_MS);
    if (!http->user_files || !http->estimate_helpers) {
        free(http); /* the daemon ends: what has handles in the loop is not released */
        return NULL;
    }
    http->parts = *options;
    uv_timer_init(options->loop, &http->server_timer);
    uv_idle_init(options->loop, &http->server_soon);
    http->on_server_soon = on_server_soon;
    uv_idle_init(options->loop, &http->list_turn);
    uv_idle_init(options->loop, &http->change_turn);
    uv_idle_init(options->loop, &http->stats_turn);
    http->server_timer.data = http->server_soon.data = http;
    http->list_turn.data = http->change_turn.data = http->stats_turn.data = http;
    return http;
}

int http_open(struct http *http, struct fault *fault)
{
    bool root = geteuid() == 0;
    struct api_server_options options = {
        .socket_path = http->parts.config->socket_path,
        .socket_mode = root ? 0666 : 0600,
        .routes = http_routes,
        .context = http,
        .version = COLLOC_VERSION,
        .body_max_bytes = BODY_MAX,
        .bytes_max = (size_t)http->parts.config->request_bytes_max,
        .idle_timeout_s = IDLE_TIMEOUT_S,
        .connections_per_user_max = CONNECTIONS_MAX,
        .is_unlisted = is_unlisted,
    };
    int r = socket_folder_make(http->parts.config->socket_path, root ? 0755 : 0700, fault);
    if (r == 0)
        r = api_server_create(&options, fault, &http->server);
    if (r < 0)
        return r;
    uv_poll_init(http->parts.loop, &http->server_poll, api_server_fd(http->server));
    http->server_poll.data = http;
    return uv_poll_start(&http->server_poll, UV_READABLE, on_server_ready);
}

void http_finish_submissions(struct http *http)
{
    if (!http || http->refuses_submissions)
        return;
    user_files_close(http->user_files);
    estimate_helpers_close(http->estimate_helpers);
    if (http->server)
        submissions_flush(http);
    submissions_refuse(http);
    http->refuses_submissions = true;
}

static void close_server(struct http *http)
{
    uv_poll_stop(&http->server_poll);
    uv_close((uv_handle_t *)&http->server_poll, NULL);
    api_server_destroy(http->server);
    http->server = NULL;
}

void http_close(struct http *http)
{
    if (!http || http->is_closed)
        return;
    http_finish_submissions(http);
    http->is_closed = true;
    listings_refuse(http);
    sliced_changes_refuse(http);
    stats_refuse(http);
    waiters_answer(http, 0, NULL);
    if (http->server)
        close_server(http);
    events_close(http);
    uv_close((uv_handle_t *)&http->server_timer, NULL);
    uv_close((uv_handle_t *)&http->server_soon, NULL);
    uv_close((uv_handle_t *)&http->list_turn, NULL);
    uv_close((uv_handle_t *)&http->change_turn, NULL);
    uv_close((uv_handle_t *)&http->stats_turn, NULL);
}

void http_destroy(struct http *http)
{
    if (!http)
        return;
    user_files_destroy(http->user_files);
    estimate_helpers_destroy(http->estimate_helpers);
    series_cache_fini(&http->series_cache);
    free(http->metrics[0].text);
    free(http->metrics[1].text);
    free(http);
}
