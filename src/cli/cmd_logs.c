/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc logs`: prints the output of tasks (log_follow.h). If both streams of a task go to one
 * file, they appear in the order in which they were written. Two files hold no times: of the
 * present output, standard output comes first, then standard error under a title.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/log_follow.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

enum { LOGS_FOLLOW, LOGS_LINES, LOGS_STDOUT, LOGS_STDERR, LOGS_ATTEMPT };

static const struct option_spec options[] = {
    [LOGS_FOLLOW] = FLAG_OPTION("follow", .letter = 'f',
        .help = "print new output as the tasks write it, until they have ended"),
    [LOGS_LINES] = OPTION("lines", INTEGER, "N", .letter = 'n', .min = 0, .max = 1000000000,
        .help = "print only the last N lines of each file, and with -f what follows"),
    [LOGS_STDOUT] = FLAG_OPTION(
        "stdout", .help = "print only standard output; if both go to one file, that file"),
    [LOGS_STDERR] = FLAG_OPTION(
        "stderr", .help = "print only standard error; if both go to one file, that file"),
    [LOGS_ATTEMPT] = OPTION("attempt", INTEGER, "K", .min = 1, .max = 1000,
        .help = "number of the attempt, from 1; default: the last one"),
};

/* ---- the task itself ---- */

/* Returns the reply with the task, for the caller to release; NULL: it cannot be read. */
static json_t *read_task(struct client *client, int64_t id)
{
    char path[64];
    struct fault fault = {0};
    json_t *reply = NULL;
    int status = 0;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64, id);
    int r = client_request(client, "GET", path, NULL, &fault, &status, &reply);
    if (r == 0 && status == 200)
        return reply;
    json_decref(reply);
    return NULL;
}

/* Only root can read the output of others. Control characters in it could hide from root what was
 * printed before, or make the terminal type. */
static bool is_foreign(struct client *client, int64_t id)
{
    if (geteuid() != 0 || !isatty(STDOUT_FILENO))
        return false;
    json_t *reply = read_task(client, id);
    bool is_own = member_number(json_object_get(reply, "task"), "uid", -1) == 0;
    json_decref(reply);
    return !is_own;
}

/* Prints why a task that did not complete ended, with the line of its output that shows it; of a
 * single one also that it has not started, so that there is no output. */
static void print_state(struct client *client, int64_t id, const char *shown, bool is_single)
{
    json_t *reply = read_task(client, id);
    if (!reply)
        return;
    const json_t *task = json_object_get(reply, "task");
    const char *state = member_text(task, "state", "COMPLETED"),
               *words = member_text(task, "reason_text", "");
    if (task_has_ended(task) && strcmp(state, "COMPLETED") != 0)
        print_error("task %s %s (%s)%s%s", shown, state, member_text(task, "reason", "-"),
            *words ? ": " : "", words);
    else if (is_single && strcmp(state, "PENDING") == 0 &&
             json_integer_value(json_object_get(task, "attempt_count")) == 0)
        print_error("task %s has not started: %s (%s)%s%s", shown, state,
            member_text(task, "reason", "-"), *words ? ": " : "", words);
    json_decref(reply);
}

/* ---- the command ---- */

static void add_stream(
    struct client *client, struct task_log *task, const char *stream, const char *name, int attempt)
{
    task->stream[task->n_streams++] = (struct log_stream){.name = name,
        .shown = task->shown,
        .fd = STDOUT_FILENO,
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
    bool is_others = is_foreign(client, task->id);
    int code = choose_streams(values, client, task);
    for (int k = 0; k < task->n_streams; k++)
        task->stream[k].is_foreign = is_others;
    for (int k = 0; k < task->n_streams && code == EXIT_OK && values[LOGS_LINES].set; k++)
        code = log_reader_seek_lines(&task->stream[k].reader, values[LOGS_LINES].number);
    return code;
}

/* If the log of a task cannot be read, the other logs are still printed, and its exit code is
 * returned at the end. If the daemon cannot be reached any more, the rest is skipped. */
static int print_all(
    const struct invocation *invocation, struct client *client, struct task_log *tasks, int count)
{
    const struct option_value *values = invocation->values;
    struct log_printer printer = {.has_titles = count > 1};
    bool follows = values[LOGS_FOLLOW].number && !values[LOGS_ATTEMPT].number;
    int first = EXIT_OK;
    for (int i = 0; i < count && first != EXIT_UNREACHABLE; i++) {
        tasks[i].code = prepare_task(values, client, &tasks[i]);
        for (int k = 0; !follows && k < tasks[i].n_streams && tasks[i].code == EXIT_OK; k++)
            tasks[i].code = log_print_rest(&printer, &tasks[i].stream[k]);
        first = tasks[i].code == EXIT_UNREACHABLE ? tasks[i].code : EXIT_OK;
    }
    if (follows && first == EXIT_OK)
        log_follow(&printer, tasks, count, NULL);
    for (int i = 0; i < count; i++) {
        first = first == EXIT_OK ? tasks[i].code : first;
        if (tasks[i].code == EXIT_OK && !values[LOGS_ATTEMPT].number)
            print_state(client, tasks[i].id, tasks[i].shown, count == 1);
    }
    return first;
}

/* After a task that is not found the others are printed. */
static int print_found(
    const struct invocation *invocation, struct client *client, const json_t *found)
{
    size_t i, count = json_array_size(found);
    json_t *one;
    struct task_log *tasks = calloc(count ? count : 1, sizeof *tasks);
    if (!tasks) {
        print_error("out of memory");
        return EXIT_REFUSED;
    }
    json_array_foreach(found, i, one) {
        tasks[i].id = json_integer_value(json_object_get(one, "id"));
        tasks[i].shown = json_string_value(json_object_get(one, "shown"));
    }
    int code = print_all(invocation, client, tasks, (int)count);
    free(tasks);
    return code;
}

static int run(const struct invocation *invocation)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    json_t *found;
    int code = session_open(invocation, &client);
    if (code != EXIT_OK)
        return code;
    code = task_words_find_all(client, invocation->operands, invocation->operand_count, &found);
    if (code != EXIT_UNREACHABLE && json_array_size(found) > 0) {
        int printed = print_found(invocation, client, found);
        code = code == EXIT_OK ? printed : code;
    }
    json_decref(found);
    return code;
}

const struct command command_logs = {
    .name = "logs",
    .usage = "[OPTION...] ID...",
    .summary = "print the output of tasks",
    .description = "Prints standard output and standard error. If both go to one file, they "
                   "appear in the order in which the task wrote them. Otherwise standard output "
                   "comes first, then a line \"==> stderr <==\" and standard error; with -f, "
                   "later output appears as it arrives. With several tasks, or an array, each has "
                   "a title line.\n\n"
                   "With -f the command runs until the tasks have ended; when a task is "
                   "restarted, the output of the new attempt follows. For a task that failed, "
                   "the last line, on standard error, says why.\n\n"
                   "On a terminal root sees the control characters of other users' output "
                   "escaped, but for tabs and ends of lines.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_ANY_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
