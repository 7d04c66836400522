/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon judges a task once at each rung, so only the first value that reaches a new one is
 * sent: a training of a million steps costs the daemon some ten requests.
 *
 *     rung=3, factor=3    step 1   2   3      4 ... 8   9      10
 *     sent                -    -   rung 0     -         rung 1
 *
 * The process that ends ends the pause (followed_process.h); what it wrote last is read then. Its
 * last lines may be on their way (exec/output_writer.h) for another second: the shim waits longer
 * than that for a process of the task.
 */
#include "cli/metric_follow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/followed_process.h"
#include "cli/metric_files.h"
#include "cli/output_lines.h"
#include "cli/print.h"
#include "cli/session.h"
#include "taskfile/metric_pattern.h"

enum {
    LAST_READS = 10, /* chosen: with their pauses a second, half of the shim's patience */
    LAST_PAUSE_MS = 100,
};

struct reading {
    const struct metric_follow *follow;
    struct client *client;
    struct metric_files files;
    struct output_lines lines;
    int64_t n_matches; /* the step of a line without one */
    int rung;          /* the highest that was sent; -1: none */
    bool has_any;      /* a value was found */
    bool is_over;      /* the task has ended */
    bool is_reached;   /* the daemon has answered: later requests wait for its restart */
};

/* Sends a value; `ret_is_away`: the daemon restarts, and has not taken it. Returns an exit code. */
static int send_report(struct client *client, int64_t task, const char *name, int64_t step,
    double value, bool *ret_is_away)
{
    char path[64];
    struct fault fault = {0};
    json_t *reply = NULL;
    int status = 0;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/metric", task);
    json_t *body = json_pack("{s:s, s:I, s:o}", "name", name, "step", (json_int_t)step, "value",
        isfinite(value) ? json_real(value) : json_null());
    int r = client_request(client, "POST", path, body, &fault, &status, &reply);
    json_decref(body);
    *ret_is_away = r < 0 || status == HTTP_UNAVAILABLE;
    int code = session_exit_code(r, status, &fault, &reply);
    json_decref(reply);
    return code;
}

int metric_report(struct client *client, int64_t task, const char *name, int64_t step, double value)
{
    bool is_away;
    return send_report(client, task, name, step, value, &is_away);
}

/* The value counts, however late; sent twice it counts once. */
static void send_value(struct reading *reading, int64_t step, double value)
{
    const struct metric_follow *follow = reading->follow;
    int64_t give_up_us = 0;
    bool is_away;
    int code;
    do
        code = send_report(
            reading->client, follow->task, follow->rule->metric, step, value, &is_away);
    while (is_away && session_may_come_back(reading->client, &give_up_us));
    reading->is_over |= code != EXIT_OK && !is_away;
}

static void take_value(struct reading *reading, int64_t step, double value)
{
    int rung = halving_rung(reading->follow->rule, step);
    reading->has_any = true;
    if (rung <= reading->rung || reading->is_over)
        return;
    reading->rung = rung;
    send_value(reading, step, value);
}

static void take_point(void *context, const struct metric_point *point)
{
    take_value(context, point->step, point->value);
}

/* ---- output ---- */

static bool take_line(void *context, struct span line)
{
    struct reading *reading = context;
    struct metric_report report;
    if (!metric_pattern_match(reading->follow->source.place, line, &report))
        return true;
    reading->n_matches++;
    take_value(reading, report.has_step ? report.step : reading->n_matches, report.value);
    return !reading->is_over;
}

/* ---- the loop ---- */

/* Without a message: the task's output is its user's. Returns whether the daemon has answered. */
static bool is_answered(const struct reading *reading)
{
    char path[64];
    struct fault fault = {0};
    json_t *reply = NULL;
    int status = 0;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64, reading->follow->task);
    int r = client_request(reading->client, "GET", path, NULL, &fault, &status, &reply);
    json_decref(reply);
    return r == 0 && status != HTTP_UNAVAILABLE;
}

/* A daemon that is away is no reason to end: the next pass asks again. Returns an exit code. */
static int read_once(struct reading *reading, int64_t *ret_pause_ms)
{
    int64_t start_us = clock_monotonic_us();
    int code = EXIT_OK;
    *ret_pause_ms = reading_pause_ms(start_us);
    if (!reading->is_reached && !(reading->is_reached = is_answered(reading)))
        return EXIT_OK;
    if (reading->follow->source.kind == METRIC_OUTPUT)
        code = output_lines_read(&reading->lines);
    else
        metric_files_poll(&reading->files);
    reading->is_reached = code != EXIT_UNREACHABLE;
    *ret_pause_ms = reading_pause_ms(start_us);
    return code == EXIT_UNREACHABLE ? EXIT_OK : code;
}

static void print_nothing_found(const struct metric_follow *follow)
{
    print_error("metric: no value of %s was found in %s%s", follow->rule->metric,
        follow->source.kind == METRIC_OUTPUT ? "the output" : follow->source.place,
        follow->is_tagged ? ": in a store of several tasks each run needs the tag colloc.task, "
                            "whose value is COLLOC_TASK_ID"
                          : "");
}

static int follow_with(struct reading *reading, struct followed_process *process)
{
    int64_t pause_ms;
    int code = read_once(reading, &pause_ms);
    while (code == EXIT_OK && !reading->is_over && !process->has_ended) {
        followed_process_wait(process, pause_ms);
        code = read_once(reading, &pause_ms);
    }
    int reads_left = reading->follow->source.kind == METRIC_OUTPUT ? LAST_READS : 0;
    for (; reads_left > 0 && code == EXIT_OK && !reading->is_over; reads_left--) {
        nanosleep(&(struct timespec){.tv_nsec = LAST_PAUSE_MS * 1000000L}, NULL);
        code = read_once(reading, &pause_ms);
    }
    if (code == EXIT_OK && !reading->has_any)
        print_nothing_found(reading->follow);
    return code;
}

int metric_follow_run(const struct metric_follow *follow)
{
    char tag[24];
    snprintf(tag, sizeof tag, "%" PRId64, follow->task);
    struct reading reading = {.follow = follow,
        .files = {.folder = follow->source.place,
            .metric = follow->rule->metric,
            .kind = follow->source.kind,
            .since_s = (double)follow->since_s,
            .tag = follow->is_tagged ? tag : NULL,
            .on_point = take_point},
        .lines = {.on_line = take_line},
        .rung = -1};
    reading.files.context = reading.lines.context = &reading;
    struct followed_process process;
    followed_process_init(&process, follow->until);
    reading.client = followed_process_open_client(&process);
    output_lines_init(&reading.lines, reading.client, follow->task);
    int code = reading.client ? follow_with(&reading, &process) : EXIT_UNREACHABLE;
    client_close(reading.client);
    followed_process_fini(&process);
    metric_files_fini(&reading.files);
    return code;
}
