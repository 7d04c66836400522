/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams are polled: the daemon answers each request at once, with the present end of a file. A
 * restarted task has a new file for each attempt: the rest of the old one is printed before the new
 * one.
 */
#include "cli/log_follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"

/* Chosen: people see no delay, and the daemon has five requests a second. */
enum { FOLLOW_PAUSE_MS = 200 };

/* ---- printing ---- */

/* Prints a title, as tail does, before text of another file than the last. */
static void print_title(struct log_printer *printer, const struct log_stream *stream)
{
    char title[64];
    if (printer->has_titles)
        snprintf(title, sizeof title, "task %s%s%s", stream->shown, *stream->name ? ": " : "",
            stream->name);
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

/* A line reports dropped output before the next output, so that a gap does not look like the task's
 * own output. */
static int print_piece(
    struct log_printer *printer, struct log_stream *stream, struct client_log *log)
{
    int r = 0;
    char size_text[32];
    if (log->dropped)
        print_error("task %" PRId64
                    ": %s of its output before this were dropped (collocd's setting kept-output)",
            stream->reader.id, format_size(log->dropped, size_text, sizeof size_text));
    if (log->size) {
        print_title(printer, stream);
        r = stream->is_foreign ? print_safe_output(stdout, log->data, log->size)
                               : file_write_fd(stream->fd, log->data, log->size);
        printer->any = true;
        printer->ends_line = log->data[log->size - 1] == '\n';
    }
    free(log->data);
    log->data = NULL;
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

/* Reads piece by piece until one is empty: a log may be larger than memory. */
int log_print_rest(struct log_printer *printer, struct log_stream *stream)
{
    struct client_log log;
    int64_t before;
    do {
        before = stream->reader.offset;
        int code = log_reader_read(&stream->reader, &log);
        if (code != EXIT_OK)
            return code;
        stream->attempt = log.attempt;
        code = print_piece(printer, stream, &log);
        if (code != EXIT_OK)
            return code;
    } while (stream->reader.offset != before);
    return EXIT_OK;
}

/* ---- following ---- */

/* A new attempt of a task has a new log: prints the rest of the old one, then begins the new
 * one. */
static int begin_attempt(
    struct log_printer *printer, struct task_log *task, struct log_stream *stream, int attempt)
{
    stream->reader.attempt = stream->attempt;
    int code = log_print_rest(printer, stream);
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
    struct log_printer *printer, struct task_log *task, struct log_stream *stream, bool *ret_any)
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
    stream->is_over = log.ended && log.size == 0 && stream->reader.offset == before;
    stream->attempt = log.attempt;
    return print_piece(printer, stream, &log);
}

/* All streams in turn; it pauses only when none of them had anything new. */
void log_follow(struct log_printer *printer, struct task_log *tasks, int count,
    const volatile sig_atomic_t *interrupted)
{
    while (!interrupted || !*interrupted) {
        bool any = false, is_over = true;
        for (int i = 0; i < count; i++)
            for (int k = 0; k < tasks[i].n_streams && tasks[i].code == EXIT_OK; k++) {
                struct log_stream *stream = &tasks[i].stream[k];
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
