/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc logs`: prints the output of tasks. If both streams of a task go to one file, they appear
 * in the order in which they were written. Two files hold no times: of the present output, standard
 * output comes first, then standard error under a title; with -f, later output appears as it
 * arrives, to a fifth of a second.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/log_reader.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

enum { LOGS_FOLLOW, LOGS_LINES, LOGS_STDOUT, LOGS_STDERR, LOGS_ATTEMPT };

static const struct option_spec options[] = {
    [LOGS_FOLLOW] = {.name = "follow",
        .letter = 'f',
        .kind = OPTION_FLAG,
        .help = "print new output as the tasks write it, until they have ended"},
    [LOGS_LINES] = {.name = "lines",
        .letter = 'n',
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 0,
        .max = 1000000000,
        .help = "print only the last N lines of each file, and with -f what follows"},
    [LOGS_STDOUT] = {.name = "stdout", .kind = OPTION_FLAG, .help = "print only standard output"},
    [LOGS_STDERR] = {.name = "stderr", .kind = OPTION_FLAG, .help = "print only standard error"},
    [LOGS_ATTEMPT] = {.name = "attempt",
        .kind = OPTION_INTEGER,
        .argument = "K",
        .min = 1,
        .max = 1000,
        .help = "number of the attempt, from 1; default: the last one"},
};

enum { STREAMS = 2, FOLLOW_PAUSE_MS = 200 };

/* One stream of a task. */
struct stream {
    struct log_reader reader;
    int attempt;      /* of the last piece; 0: none was read yet */
    bool is_over;     /* it has ended */
    const char *name; /* in the title above its text; "": no title */
};

struct task_log {
    int64_t id;
    struct stream stream[STREAMS];
    int n_streams;
    int attempt_said; /* the newest attempt that was announced to the user */
    int code;         /* EXIT_OK, or the exit code of the first error */
};

/* What was printed last. */
struct printer {
    bool has_titles; /* logs of several tasks */
    char title[64];
    bool any, ends_line;
};

/* ---- printing ---- */

/* Prints a title, as tail does, before text of another file than the last. */
static void print_title(struct printer *printer, const struct stream *stream)
{
    char title[64];
    if (printer->has_titles)
        snprintf(title, sizeof title, "task %" PRId64 "%s%s", stream->reader.id,
            *stream->name ? ": " : "", stream->name);
    else
        snprintf(title, sizeof title, "%s", stream->name);
    if (strcmp(title, printer->title) == 0)
        return;
    memcpy(printer->title, title, sizeof title);
    if (!printer->has_titles && !printer->any)
        return; /* of one task that has written to standard error only */
    printf("%s%s==> %s <==\n", printer->any && !printer->ends_line ? "\n" : "",
        printer->any ? "\n" : "", title);
    fflush(stdout);
}

static int print_piece(struct printer *printer, struct stream *stream, struct client_log *log)
{
    int r = 0;
    char size_text[32];
    if (log->dropped)
        print_error("task %" PRId64
                    ": %s of its output before this were dropped (collocd's setting kept-output)",
            stream->reader.id, format_size(log->dropped, size_text, sizeof size_text));
    if (log->size) {
        print_title(printer, stream);
        r = file_write_fd(STDOUT_FILENO, log->data, log->size);
        printer->any = true;
        printer->ends_line = log->data[log->size - 1] == '\n';
    }
    free(log->data);
    log->data = NULL;
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

/* Prints all present output. */
static int print_rest(struct printer *printer, struct stream *stream)
{
    struct client_log log;
    size_t size;
    do {
        int code = log_reader_read(&stream->reader, &log);
        if (code != EXIT_OK)
            return code;
        size = log.size;
        stream->attempt = log.attempt;
        code = print_piece(printer, stream, &log);
        if (code != EXIT_OK)
            return code;
    } while (size);
    return EXIT_OK;
}

/* ---- following ---- */

/* A new attempt of a task has a new log: prints the rest of the old one, then begins the new
 * one. */
static int begin_attempt(
    struct printer *printer, struct task_log *task, struct stream *stream, int attempt)
{
    stream->reader.attempt = stream->attempt;
    int code = print_rest(printer, stream);
    stream->reader.attempt = 0;
    stream->reader.offset = 0;
    stream->attempt = attempt;
    if (task->attempt_said < attempt)
        print_error("task %" PRId64 " was restarted: attempt %d", task->id, attempt);
    task->attempt_said = attempt;
    return code;
}

/* Polls a stream once. `ret_any`: set to true if it had output. */
static int follow_stream(
    struct printer *printer, struct task_log *task, struct stream *stream, bool *ret_any)
{
    struct client_log log;
    int64_t before = stream->reader.offset;
    int code = log_reader_read(&stream->reader, &log);
    if (code != EXIT_OK)
        return code;
    if (stream->attempt && log.attempt != stream->attempt) {
        free(log.data);
        stream->reader.offset = before;
        *ret_any = true;
        return begin_attempt(printer, task, stream, log.attempt);
    }
    *ret_any |= log.size > 0;
    stream->is_over = log.ended && log.size == 0;
    stream->attempt = log.attempt;
    return print_piece(printer, stream, &log);
}

static void follow_tasks(struct printer *printer, struct task_log *tasks, int count)
{
    for (;;) {
        bool any = false, is_over = true;
        for (int i = 0; i < count; i++)
            for (int k = 0; k < tasks[i].n_streams && tasks[i].code == EXIT_OK; k++) {
                struct stream *stream = &tasks[i].stream[k];
                if (!stream->is_over)
                    tasks[i].code = follow_stream(printer, &tasks[i], stream, &any);
                is_over &= stream->is_over || tasks[i].code != EXIT_OK;
            }
        if (is_over)
            return;
        if (!any)
            nanosleep(&(struct timespec){.tv_nsec = FOLLOW_PAUSE_MS * 1000000L}, NULL);
    }
}

/* ---- a task's end ---- */

/* Prints why a task that did not complete ended, with the line of its output that shows it. */
static void print_ending(struct client *client, int64_t id)
{
    char path[64];
    struct fault fault = {0};
    json_t *reply = NULL;
    int status = 0;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64, id);
    int r = client_request(client, "GET", path, NULL, &fault, &status, &reply);
    const json_t *task = json_object_get(reply, "task");
    const char *state = member_text(task, "state", "COMPLETED"),
               *words = member_text(task, "reason_text", "");
    if (r == 0 && status == 200 && task_has_ended(task) && strcmp(state, "COMPLETED") != 0)
        print_error("task %" PRId64 " %s (%s)%s%s", id, state, member_text(task, "reason", "-"),
            *words ? ": " : "", words);
    json_decref(reply);
}

/* ---- the command ---- */

static void add_stream(
    struct client *client, struct task_log *task, const char *stream, const char *name, int attempt)
{
    task->stream[task->n_streams++] = (struct stream){.name = name,
        .reader = {.client = client, .stream = stream, .id = task->id, .attempt = attempt}};
}

/* Chooses the streams to print: one if both go to one file, or if one is selected. */
static int choose_streams(
    const struct option_value *values, struct client *client, struct task_log *task)
{
    bool out = values[LOGS_STDOUT].number, err = values[LOGS_STDERR].number;
    bool both = out == err, is_apart = !values[LOGS_FOLLOW].number;
    int attempt = (int)values[LOGS_ATTEMPT].number;
    struct client_log log = {0};
    add_stream(client, task, both || out ? "stdout" : "stderr", "", attempt);
    if (!both)
        return EXIT_OK;
    struct log_reader probe = task->stream[0].reader;
    int code = log_reader_read(&probe, &log);
    free(log.data);
    if (code == EXIT_OK && !log.merged)
        add_stream(client, task, "stderr", is_apart ? "stderr" : "", attempt);
    return code;
}

static int prepare_task(
    const struct option_value *values, struct client *client, struct task_log *task)
{
    int code = choose_streams(values, client, task);
    for (int k = 0; k < task->n_streams && code == EXIT_OK && values[LOGS_LINES].set; k++)
        code = log_reader_seek_lines(&task->stream[k].reader, values[LOGS_LINES].number);
    return code;
}

static int print_all(
    const struct invocation *invocation, struct client *client, struct task_log *tasks, int count)
{
    const struct option_value *values = invocation->values;
    struct printer printer = {.has_titles = count > 1};
    bool follows = values[LOGS_FOLLOW].number && !values[LOGS_ATTEMPT].number;
    int first = EXIT_OK;
    for (int i = 0; i < count && first != EXIT_UNREACHABLE; i++) {
        tasks[i].code = prepare_task(values, client, &tasks[i]);
        for (int k = 0; !follows && k < tasks[i].n_streams && tasks[i].code == EXIT_OK; k++)
            tasks[i].code = print_rest(&printer, &tasks[i].stream[k]);
        first = tasks[i].code == EXIT_UNREACHABLE ? tasks[i].code : EXIT_OK;
    }
    if (follows && first == EXIT_OK)
        follow_tasks(&printer, tasks, count);
    for (int i = 0; i < count; i++) {
        first = first == EXIT_OK ? tasks[i].code : first;
        if (tasks[i].code == EXIT_OK && !values[LOGS_ATTEMPT].number)
            print_ending(client, tasks[i].id);
    }
    return first;
}

static int run(const struct invocation *invocation)
{
    int count = invocation->operand_count, code = EXIT_OK;
    struct client *client;
    json_t *ids;
    struct task_log *tasks = calloc((size_t)count, sizeof *tasks);
    if (!tasks) {
        print_error("out of memory");
        return EXIT_REFUSED;
    }
    code = task_words_expand(invocation->operands, count, &ids);
    if (code == EXIT_OK) {
        json_decref(ids);
        code = session_open(invocation, &client);
    }
    if (code == EXIT_OK) {
        for (int i = 0; i < count && code == EXIT_OK; i++)
            code = task_word_find(client, invocation->operands[i], &tasks[i].id);
        if (code == EXIT_OK)
            code = print_all(invocation, client, tasks, count);
        client_close(client);
    }
    free(tasks);
    return code;
}

const struct command command_logs = {
    .name = "logs",
    .usage = "[OPTION...] ID...",
    .summary = "print the output of tasks",
    .description = "Prints standard output and standard error. If both go to one file, they "
                   "appear in the order in which the task wrote them. Otherwise standard output "
                   "comes first, then a line \"==> stderr <==\" and standard error; with -f, "
                   "later output appears as it arrives. With several tasks, each has a title "
                   "line.\n\n"
                   "With -f the command runs until the tasks have ended; when a task is "
                   "restarted, the output of the new attempt follows. For a task that failed, "
                   "the last line, on standard error, says why.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
