/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a task's output, read piece by piece while it runs. */
#ifndef COLLOC_CLI_OUTPUT_LINES_H
#define COLLOC_CLI_OUTPUT_LINES_H

#include "base/text.h"
#include "cli/log_reader.h"
#include "taskfile/metric_pattern.h"

enum { OUTPUT_STREAMS = 2 };

struct output_lines {
    /* Called for each line, without its end; of a longer one, METRIC_LINE_MAX bytes. Returns false:
     * no more lines are wanted. */
    bool (*on_line)(void *context, struct span line);
    void *context;
    struct output_stream {
        struct log_reader reader;
        char text[METRIC_LINE_MAX]; /* of a line that is not complete */
        size_t size;
    } streams[OUTPUT_STREAMS];
    int n_streams;
};

/* `on_line` and `context` are set. `client`: borrowed. */
void output_lines_init(struct output_lines *lines, struct client *client, int64_t task);

/* Reads what is there since the last call. Returns an exit code, with a message printed. */
int output_lines_read(struct output_lines *lines);

#endif
