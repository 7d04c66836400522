/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the output of tasks, the present and the future part. */
#ifndef COLLOC_CLI_LOG_FOLLOW_H
#define COLLOC_CLI_LOG_FOLLOW_H

#include <signal.h>
#include <stdbool.h>

#include "cli/log_reader.h"

enum { LOG_STREAMS = 2 };

/* One stream of a task. */
struct log_stream {
    struct log_reader reader;
    const char *shown; /* of several tasks: the id in titles, "12" or "14_3" */
    int attempt;       /* of the last piece; 0: none was read yet */
    bool is_over;      /* it has ended */
    const char *name;  /* in the title above its text; "": no title */
    int fd;            /* where its text is printed */
    bool is_foreign;   /* another user's, for a terminal, which it must not control; fd: 1 */
};

struct task_log {
    int64_t id;
    const char *shown; /* as in its streams */
    struct log_stream stream[LOG_STREAMS];
    int n_streams;
    int attempt_said; /* the newest attempt that was announced to the user */
    int code;         /* EXIT_OK, or the exit code of the first error */
};

/* The state of the output; the caller sets `has_titles`, the rest is zero. */
struct log_printer {
    bool has_titles; /* logs of several tasks */
    char title[64];
    bool any, ends_line;
};

/* Prints all present output of a stream. Returns as log_reader_read. */
int log_print_rest(struct log_printer *printer, struct log_stream *stream);

/*
 * Prints the output of the tasks as it arrives, to a fifth of a second, until all have ended; the
 * `code` of each says how that went.
 *
 * interrupted: also returns when this is not 0, having printed nothing more; or NULL
 */
void log_follow(struct log_printer *printer, struct task_log *tasks, int count,
    const volatile sig_atomic_t *interrupted);

#endif
