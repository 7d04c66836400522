/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc show`: everything about one task. A table says which members of its JSON are printed
 * under which label.
 *
 *     {"Ran", "exec_s", seconds_text}          Ran          3:04
 *     {"Memory req.", "need_mib", mib_text}    Memory req.  11.4 GiB
 *
 * When a waiting task is expected to start is another question to the daemon.
 *
 * With --plot its metrics over time are drawn instead (task_plot.c).
 */
#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/session_once.h"
#include "cli/task_forms.h"
#include "cli/task_plot.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

enum { SHOW_PLOT };

static const struct option_spec options[] = {
    [SHOW_PLOT] = FLAG_OPTION("plot",
        .help = "show its metrics over time instead: of each GPU, and of its processes on the "
                "host"),
};

enum { LABEL_WIDTH = 13, EVENT_WIDTH = 32 };

typedef const char *field_format(const json_t *, char[CELL_SIZE]);

/* How a member is shown. */
struct field {
    const char *label, *key;
    field_format *format;
};

static const char *percent_text(const json_t *value, char cell[CELL_SIZE])
{
    if (!json_is_number(value))
        return "-";
    snprintf(cell, CELL_SIZE, "%.0f %%", json_number_value(value));
    return cell;
}

/* What most tasks never have is not shown. */
static const char *count_text(const json_t *value, char cell[CELL_SIZE])
{
    return json_number_value(value) > 0 ? scalar_text(value, cell) : "-";
}

static const char *gpu_count_text(const json_t *value, char cell[CELL_SIZE])
{
    return json_number_value(value) > 0 ? scalar_text(value, cell) : "no GPU";
}

static const char *stopped_text(const json_t *value, char cell[CELL_SIZE])
{
    return json_number_value(value) > 0 ? seconds_text(value, cell) : "-";
}

static const char *latency_text(const json_t *value, char cell[CELL_SIZE])
{
    if (!json_is_number(value))
        return "-";
    snprintf(cell, CELL_SIZE, "%.1f ms", 1e3 * json_number_value(value));
    return cell;
}

static const char *whole_text(const json_t *value, char cell[CELL_SIZE])
{
    if (!json_is_number(value))
        return "-";
    snprintf(cell, CELL_SIZE, "%.0f", json_number_value(value));
    return cell;
}

/* An entry of GET /v1/starts. */
static const char *start_text(const json_t *start, char cell[CELL_SIZE])
{
    const json_t *expected = json_object_get(start, "expected_start");
    bool is_known = json_is_number(expected),
         begins = member_number(start, "earliest_start", 0) > 0;
    if (!is_known)
        return !start || begins ? "-"
                                : "not known: a task that has to end first has neither --time nor "
                                  "--expect";
    char moment[CELL_SIZE];
    snprintf(cell, CELL_SIZE, "%s, as expected by the times of the tasks before it",
        moment_text(expected, moment));
    return cell;
}

/* "None" is a task that waits for nothing. */
static const char *reason_text(const json_t *reason, char cell[CELL_SIZE])
{
    const char *word = json_string_value(reason);
    return word && strcmp(word, "None") == 0 ? "-" : scalar_text(reason, cell);
}

static const struct field fields[] = {
    {"Name", "name", scalar_text},
    {"User", "user", scalar_text},
    {"Command", "command", scalar_text},
    {"State", "state", scalar_text},
    {"Reason", "reason", reason_text},
    {"", "reason_text", scalar_text},
    {"Position", "position", scalar_text},
    {"Priority", "priority", scalar_text},
    {"Starts", START_MEMBER, start_text},
    {"Begins", "begin_at", moment_text},
    {"Waits for", "waits_for", list_text},
    {"Submitted", "submitted_at", moment_text},
    {"Started", "started_at", moment_text},
    {"Ended", "ended_at", moment_text},
    {"Waited", "wait_s", seconds_text},
    {"Ran", "exec_s", seconds_text},
    {"Time limit", "time_limit_s", seconds_text},
    {"GPUs asked", "gpus_requested", gpu_count_text},
    {"GPUs", "gpus", list_text},
    {"Policy", "policy", scalar_text},
    {"Sharing", "sharing", scalar_text},
    {"", "sharing_text", scalar_text},
    {"SM limit", "thread_percentage", percent_text},
    {"Memory limit", "mem_limit_mib", mib_text},
    {"Exclusive", "exclusive", scalar_text},
    {"Memory req.", "need_mib", mib_text},
    {"Memory note", "mem_text", scalar_text},
    {"Estimate", "estimate_mib", mib_text},
    {"Estimator", "estimator", scalar_text},
    {"Estimate of", "estimate_evidence", scalar_text},
    {"Kernels", "estimate_kernels", scalar_text},
    {"Memory now", "mem_used_mib", mib_text},
    {"Memory peak", "mem_peak_mib", mib_text},
    {"Memory waits", "memory_waits", count_text},
    {"Waited for", "memory_wait_s", stopped_text},
    {"SMACT exp.", "smact_text", scalar_text},
    {"SMACT mean", "smact_mean", fraction_text},
    {"Steps/s now", "steps_per_s", rate_text},
    {"Steps/s mean", "steps_per_s_mean", rate_text},
    {"Steps", "steps", whole_text},
    {"Max slowdown", "max_slowdown", rate_text},
    {"Slowdown now", "slowdown", rate_text},
    {"Promise", "promise_text", scalar_text},
    {"Probes", "probes_text", scalar_text},
    {"Energy", "energy_j", joules_text},
    {"Suspended", "suspended_s", stopped_text},
    {"Stop cost", "suspension_cost_s", stopped_text},
    {"Moves", "moves", count_text},
    {"Suspension", "suspension_error", scalar_text},
    {"Not carried", "carrier_obstacle", scalar_text},
    {"Copy memory", "copy_room_text", scalar_text},
    {"p99 now", "p99_now_s", latency_text},
    {"Target", "target_state", scalar_text},
    {"Restarts", "restart_count", count_text},
    {"Attempts", "attempt_count", scalar_text},
    {"GPU OOMs", "oom_count", scalar_text},
    {"Requeued", "requeue_count", scalar_text},
    {"Exit code", "exit_code", scalar_text},
    {"Signal", "signal", scalar_text},
    {"Failure", "failure", scalar_text},
    {"Evidence", "evidence", scalar_text},
    {"Summary", "summary_name", scalar_text},
};

static const struct field fields_after_options[] = {
    {"Damaged", "damaged", scalar_text},
    {"Folder", "cwd", scalar_text},
    {"Output", "output", scalar_text},
    {"Error", "error", scalar_text},
};

/* Prints the rest of a line from `column` on, wrapped if the terminal is too narrow. */
static void print_from(const char *text, int column)
{
    if (output_width() && column + (int)strlen(text) > output_width()) {
        print_wrapped(text, column, output_width());
        return;
    }
    print_safe(stdout, text);
    putchar('\n');
}

/* Returns whether there was something to print. */
static bool print_field(const char *label, const struct field *field, const json_t *value)
{
    char cell[CELL_SIZE];
    const char *text = field->format(value, cell);
    if (strcmp(text, "-") == 0 || !*text)
        return false;
    printf("%-12s ", label);
    print_from(text, LABEL_WIDTH);
    return true;
}

/* "Attempt 1    GPU 2, 2026-11-20 16:02:11 to 2026-11-20 16:07:45: OutOfMemory" */
static void print_attempts(const json_t *task)
{
    size_t i;
    json_t *attempt;
    json_array_foreach(json_object_get(task, "attempts"), i, attempt) {
        char label[32], line[512];
        attempt_text(attempt, line, sizeof line);
        snprintf(label, sizeof label, "Attempt %zu", i + 1);
        printf("%-12s ", label);
        print_from(line, LABEL_WIDTH);
    }
}

static void print_events(const json_t *events)
{
    size_t i;
    json_t *event;
    if (json_array_size(events))
        printf("\n");
    json_array_foreach(events, i, event) {
        char cell[CELL_SIZE];
        printf("%-19s  %-10s ", moment_text(json_object_get(event, "at"), cell),
            member_text(event, "event", "?"));
        print_from(member_text(event, "text", ""), EVENT_WIDTH);
    }
}

/* Line by line through print_safe: a script is a user's text, which may have characters that
 * control the terminal. */
static void print_script(const json_t *task)
{
    const char *script = member_text(task, "script", NULL);
    if (!script)
        return;
    printf("\nScript:\n");
    for (const char *line = script; *line;) {
        size_t n = strcspn(line, "\n");
        char *copy = strndup(line, n);
        printf("    ");
        print_safe(stdout, copy ? copy : "");
        putchar('\n');
        free(copy);
        line += n + (line[n] == '\n');
    }
}

static void print_arguments(const json_t *task)
{
    size_t i;
    json_t *argument;
    const json_t *arguments = json_object_get(task, "arguments");
    if (json_array_size(arguments))
        printf("\nArguments:\n");
    json_array_foreach(arguments, i, argument) {
        printf("    ");
        print_safe(stdout, json_string_value(argument));
        putchar('\n');
    }
}

/* A field without a label says more of the one before it, or stands for it where that has nothing
 * to print. */
static void print_fields(const json_t *task, const struct field *list, size_t count)
{
    bool is_before = false;
    for (size_t i = 0; i < count; i++) {
        const char *label = i > 0 && !*list[i].label && !is_before ? list[i - 1].label
                                                                   : list[i].label;
        is_before = print_field(label, &list[i], json_object_get(task, list[i].key));
    }
}

/* Chosen: a duration that may be no longer than this is one of requests, and shown in ms. */
#define LATENCY_MAX_US (10 * SECOND_US)

static field_format *duration_format(const struct option_spec *spec)
{
    return spec->max <= LATENCY_MAX_US ? latency_text : seconds_text;
}

/* Options that the daemon keeps as they were submitted; other fields show what became of the rest.
 */
static void print_submitted_options(const json_t *task)
{
    for (size_t i = 0; i < task_option_count; i++) {
        const struct option_spec *spec = &task_options[i];
        struct field field = {.label = spec->shown_as,
            .key = spec->field,
            .format = spec->kind == OPTION_SIZE       ? mib_text
                      : spec->kind == OPTION_DURATION ? duration_format(spec)
                      : spec->kind == OPTION_SHARE    ? fraction_text
                                                      : scalar_text};
        if (spec->shown_as)
            print_fields(task, &field, 1);
    }
}

/* Writes the value of the letter after "%" in the path of an output file. Returns whether the
 * letter has one. */
static bool write_pattern(FILE *out, const json_t *task, char letter)
{
    double id = member_number(task, "id", 0);
    if (letter == 'j')
        fprintf(out, "%.0f", id);
    else if (letter == 'A')
        fprintf(out, "%.0f", member_number(task, "array_id", id));
    else if (letter == 'a')
        fprintf(out, "%.0f", member_number(task, "array_index", 0));
    else if (letter == 'x')
        for (const char *at = member_text(task, "name", "task"); *at; at++)
            fputc(*at == '/' ? '_' : *at, out);
    else if (letter == '%')
        fputc('%', out);
    else
        return false;
    return true;
}

/* Replaces the member by the path of the file, with its patterns expanded. */
static void expand_path(json_t *task, const char *key)
{
    const char *pattern = member_text(task, key, NULL);
    char *path = NULL;
    size_t size = 0;
    FILE *out = pattern ? open_memstream(&path, &size) : NULL;
    if (!out)
        return;
    for (const char *at = pattern; *at; at++) {
        if (at[0] == '%' && write_pattern(out, task, at[1]))
            at++;
        else
            fputc(*at, out);
    }
    if (fclose(out) == 0)
        json_object_set_new(task, key, json_string(path));
    free(path);
}

/* "Tasks        90 PENDING, 8 RUNNING, 2 COMPLETED" */
static void print_array(const json_t *array)
{
    static const struct field lines[] = {{"Name", "name", scalar_text},
        {"User", "user", scalar_text}, {"Indices", "indices", scalar_text},
        {"At a time", "limit", scalar_text}};
    const char *state, *separator = "";
    json_t *count;
    printf("%-12s %.0f\n", "Array", member_number(array, "id", 0));
    print_fields(array, lines, ARRAY_SIZE(lines));
    printf("%-12s ", "Tasks");
    json_object_foreach(json_object_get(array, "states"), state, count) {
        printf("%s%lld %s", separator, (long long)json_integer_value(count), state);
        separator = ", ";
    }
    printf("\n%-12s %.0f to %.0f\n", "Their ids", member_number(array, "first", 0),
        member_number(array, "last", 0));
}

/* In the order of people's questions: its name and state, its submission, where it ran, what
 * happened, and last its script. */
static void print_task(json_t *task)
{
    char id[CELL_SIZE];
    expand_path(task, "output");
    expand_path(task, "error");
    printf("%-12s %s\n", "Task", task_id_text(task, id, sizeof id));
    if (member_number(task, "array_id", 0) > 0)
        printf("%-12s %.0f\n", "Its id", member_number(task, "id", 0));
    print_fields(task, fields, ARRAY_SIZE(fields));
    print_submitted_options(task);
    print_fields(task, fields_after_options, ARRAY_SIZE(fields_after_options));
    print_attempts(task);
    print_events(json_object_get(task, "events"));
    print_script(task);
    print_arguments(task);
}

/* The width of the terminal decides the resolution; block characters need UTF-8. */
static int print_plot(const struct invocation *invocation, int64_t id)
{
    char path[64];
    json_t *reply;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/series", id);
    int code = session_get(invocation, path, &reply);
    if (code != EXIT_OK)
        return code;
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        task_plot_print(reply, output_width(), strcmp(nl_langinfo(CODESET), "UTF-8") == 0, stdout);
    json_decref(reply);
    return EXIT_OK;
}

/* Gives a waiting task its entry in GET /v1/starts. None is no error: the task may be behind those
 * that are predicted, or the daemon older. */
static void add_start(struct client *client, json_t *task)
{
    size_t i;
    json_t *start;
    struct fault fault = {0};
    int status = 0;
    json_auto_t *reply = NULL;
    if (strcmp(member_text(task, "state", ""), "PENDING") != 0 ||
        client_request(client, "GET", "/v1/starts", NULL, &fault, &status, &reply) < 0)
        return;
    json_array_foreach(json_object_get(reply, "starts"), i, start) {
        if (json_equal(json_object_get(start, "id"), json_object_get(task, "id")))
            json_object_set(task, START_MEMBER, start);
    }
}

static void print_reply(const struct invocation *invocation, const json_t *reply)
{
    json_t *array = json_object_get(reply, "array"), *task = json_object_get(reply, "task");
    if (invocation->common[COMMON_JSON].number)
        print_json(array ? array : task);
    else if (array)
        print_array(array);
    else
        print_task(task);
}

static int show_task(const struct invocation *invocation, struct client *client)
{
    int64_t id;
    json_t *reply;
    int code = task_word_find(client, invocation->operands[0], &id);
    if (code != EXIT_OK)
        return code;
    if (invocation->values[SHOW_PLOT].set)
        return print_plot(invocation, id);
    code = session_get_task(client, id, &reply);
    if (code != EXIT_OK)
        return code;
    if (!invocation->common[COMMON_JSON].number)
        add_start(client, json_object_get(reply, "task"));
    print_reply(invocation, reply);
    json_decref(reply);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    json_t *ids;
    if (task_words_expand(invocation->operands, 1, &ids) != EXIT_OK)
        return EXIT_USAGE;
    json_decref(ids);
    int code = session_open(invocation, &client);
    return code == EXIT_OK ? show_task(invocation, client) : code;
}

const struct command command_show = {
    .name = "show",
    .usage = "[OPTION...] ID",
    .summary = "show everything about one task",
    .description =
        "ID is a task (12), a task of an array (12_7), or an array: then it prints the "
        "number of tasks in each state.\n\n"
        "Prints the options of the task, why it waits and when it is expected to start, its "
        "GPUs, its use of them, how it ended and "
        "its events; for its owner and root also the script as it was submitted. "
        "With --json the task is one object.\n\n"
        "With --plot it prints the task's GPU memory, SM activity, power and the like "
        "over time, and its processes' CPU, memory and disk use, with its "
        "attempts (x: one that failed, /: suspended, -: paused, >: moved to other "
        "GPUs) and the tasks beside it. Occupancy, bandwidth and PCIe traffic are known only while the task is alone on its GPU.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_ANY_TASK,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
