/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc trace export`: the trace that the daemon makes (GET /v1/trace), into a file.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/moment.h"
#include "cli/print.h"
#include "cli/session_once.h"
#include "cli/trace_run.h"

enum { SINCE_USUAL_S = 86400 }; /* before now */

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

/* The number of tasks goes to standard error: standard output may be the trace. */
static int write_trace(const struct trace_run *run, const json_t *trace, struct fault *fault)
{
    const json_t *about = json_object_get(trace, "otherData");
    const char *path = trace_value(run, TRACE_OUTPUT)->text,
               *note = json_string_value(json_object_get(about, "note"));
    bool is_file = path && strcmp(path, "-") != 0;
    long long tasks = json_integer_value(json_object_get(about, "tasks"));
    FILE *out = is_file ? fopen(path, "we") : stdout;
    if (!out)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int r = print_json_to(out, trace, JSON_COMPACT) == EXIT_OK ? 0 : -ENOMEM;
    if ((is_file ? fclose(out) : fflush(out)) != 0)
        r = -errno;
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", is_file ? path : "standard output", strerror(-r));
    fprintf(stderr, "%lld task%s; open the trace at https://ui.perfetto.dev\n", tasks,
        tasks == 1 ? "" : "s");
    if (note)
        print_error("%s: %s", is_file ? path : "the trace", note);
    return 0;
}

int trace_export(const struct trace_run *run, struct fault *fault)
{
    struct span_of_time span;
    char path[128];
    json_t *trace = NULL;
    int r = read_span(run, fault, &span);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "/v1/trace?since=%lld&until=%lld", (long long)span.since_s,
        (long long)span.until_s);
    r = session_get(run->invocation, path, &trace);
    if (r == EXIT_OK)
        r = write_trace(run, trace, fault);
    json_decref(trace);
    return r;
}
