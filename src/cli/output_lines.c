/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output and standard error are read one after the other, or once where both are in one
 * file. */
#include "cli/output_lines.h"

#include <stdlib.h>

#include "cli/command.h"

void output_lines_init(struct output_lines *lines, struct client *client, int64_t task)
{
    static const char *const names[OUTPUT_STREAMS] = {"stdout", "stderr"};
    lines->n_streams = OUTPUT_STREAMS;
    for (int i = 0; i < OUTPUT_STREAMS; i++) {
        lines->streams[i].size = 0;
        lines->streams[i].reader = (struct log_reader){
            .client = client, .stream = names[i], .id = task};
    }
}

/* A progress bar ends its lines with '\r'. Returns false: no more lines are wanted. */
static bool take_output(
    struct output_lines *lines, struct output_stream *stream, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool is_end = data[i] == '\n' || data[i] == '\r';
        const struct span line = {stream->text, stream->size};
        if (!is_end && stream->size < sizeof stream->text)
            stream->text[stream->size++] = data[i];
        if (is_end)
            stream->size = 0;
        if (is_end && !lines->on_line(lines->context, line))
            return false;
    }
    return true;
}

static int read_stream(struct output_lines *lines, struct output_stream *stream)
{
    struct client_log log;
    int64_t before;
    bool goes_on;
    do {
        before = stream->reader.offset;
        int code = log_reader_read(&stream->reader, &log);
        if (code != EXIT_OK)
            return code;
        goes_on = take_output(lines, stream, log.data, log.size);
        if (log.merged)
            lines->n_streams = 1;
        free(log.data);
    } while (stream->reader.offset != before && goes_on);
    return EXIT_OK;
}

int output_lines_read(struct output_lines *lines)
{
    int code = EXIT_OK;
    for (int i = 0; i < lines->n_streams && code == EXIT_OK; i++)
        code = read_stream(lines, &lines->streams[i]);
    return code;
}
