/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc trace export`: tasks, GPUs and their metrics from the daemon, written by chrome_trace.c.
 * The trace is made here, not by the daemon, which has other things to do.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/moment.h"
#include "cli/chrome_trace.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/trace_run.h"

enum {
    TASKS_MAX = 100000,    /* ended ones; chosen */
    POINTS = 2000,         /* of each counter; chosen: more than a screen has columns */
    SINCE_USUAL_S = 86400, /* before now */
    HTTP_OK = 200,
};

struct span_of_time {
    int64_t since_s, until_s; /* seconds since 1970 */
};

static int read_moment(
    const struct trace_run *run, int option, int64_t now_s, struct fault *fault, int64_t *ret_s)
{
    const char *text = trace_value(run, option)->text;
    if (!text || moment_parse(text, now_s, ret_s) == 0)
        return 0;
    return fault_set(fault, EINVAL,
        "--%s=%.60s: invalid time: give 2026-11-20, \"2026-11-20 16:00\", 16:00 or 2h (before now)",
        trace_options[option].name, text);
}

static int read_span(
    const struct trace_run *run, struct fault *fault, struct span_of_time *ret_span)
{
    int64_t now_s = time(NULL);
    *ret_span = (struct span_of_time){now_s - SINCE_USUAL_S, now_s + 1}; /* with this second */
    int r = read_moment(run, TRACE_SINCE, now_s, fault, &ret_span->since_s);
    if (r == 0)
        r = read_moment(run, TRACE_UNTIL, now_s, fault, &ret_span->until_s);
    if (r == 0 && ret_span->since_s >= ret_span->until_s)
        r = fault_set(fault, EINVAL, "--since is not before --until");
    return r;
}

/* What the daemon has. All may be NULL. */
struct answers {
    json_t *tasks, *gpus, *series;
};

static void answers_fini(struct answers *answers)
{
    json_decref(answers->tasks);
    json_decref(answers->gpus);
    json_decref(answers->series);
}

/* A daemon that records no metrics has none. Returns an exit status. */
static int get_series(
    const struct invocation *invocation, const struct span_of_time *span, json_t **ret_series)
{
    char path[256];
    struct client *client;
    struct fault fault = {0};
    int status;
    snprintf(path, sizeof path, "/v1/gpus/all/series?range=no&since=%lld&until=%lld&step_s=%.3f",
        (long long)span->since_s, (long long)span->until_s,
        (double)(span->until_s - span->since_s) / POINTS);
    int code = session_open(invocation, &client);
    if (code != EXIT_OK)
        return code;
    int r = client_request(client, "GET", path, NULL, &fault, &status, ret_series);
    client_close(client);
    if (r == 0 && status == HTTP_OK)
        return EXIT_OK;
    if (r == 0)
        client_error(status, *ret_series, &fault);
    print_error("the trace has no counters: %s", fault.text);
    return EXIT_OK;
}

static int get_all(
    const struct invocation *invocation, const struct span_of_time *span, struct answers *answers)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/tasks?state=all&limit=%d&since=%lld", TASKS_MAX,
        (long long)span->since_s);
    int code = session_get(invocation, path, &answers->tasks);
    if (code == EXIT_OK)
        code = session_get(invocation, "/v1/gpus", &answers->gpus);
    if (code == EXIT_OK)
        code = get_series(invocation, span, &answers->series);
    return code;
}

static int write_trace(const struct trace_run *run, const struct answers *answers,
    const struct span_of_time *span, struct fault *fault)
{
    const char *path = trace_value(run, TRACE_OUTPUT)->text;
    bool is_file = path && strcmp(path, "-") != 0;
    const struct chrome_trace_input input = {
        .tasks = json_object_get(answers->tasks, "tasks"),
        .gpus = json_object_get(answers->gpus, "gpus"),
        .series = json_object_get(answers->series, "series"),
        .since = (double)span->since_s,
        .until = (double)span->until_s,
    };
    FILE *out = is_file ? fopen(path, "we") : stdout;
    if (!out)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int shown = chrome_trace_write(&input, out);
    int r = (is_file ? fclose(out) : fflush(out)) != 0 && shown >= 0 ? -errno : shown;
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", is_file ? path : "standard output", strerror(-r));
    fprintf(stderr, "%d task%s; open the trace at https://ui.perfetto.dev or chrome://tracing\n",
        shown, shown == 1 ? "" : "s");
    if (json_array_size(input.tasks) >= TASKS_MAX)
        print_error("the trace has the last %d ended tasks only", TASKS_MAX);
    return 0;
}

int trace_export(struct trace_run *run, struct fault *fault)
{
    struct span_of_time span;
    struct answers answers = {0};
    int r = read_span(run, fault, &span);
    if (r < 0)
        return r;
    r = get_all(run->invocation, &span, &answers);
    if (r == EXIT_OK)
        r = write_trace(run, &answers, &span, fault);
    answers_fini(&answers);
    return r;
}
