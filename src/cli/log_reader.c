/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads logs through the daemon, which sends pieces of at most 256 KiB, from an offset or from a
 * distance to the end. The last lines of a log of any size are found by reading pieces backwards
 * from its end and counting line ends. The search stops where the daemon has dropped the beginning
 * of a long log.
 */
#include "cli/log_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/print.h"
#include "cli/session.h"

#define PIECE ((int64_t)256 << 10) /* bytes; the daemon's largest piece (daemon/http/route_log.c) */

/* A negative offset counts from the end. */
static int read_from(const struct log_reader *reader, int64_t offset, struct client_log *ret_log)
{
    char path[192];
    struct fault fault = {0};
    int64_t give_up_us = 0;
    int r, status,
        n = snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/log?stream=%s&%s=%" PRId64,
            reader->id, reader->stream, offset < 0 ? "tail" : "offset",
            offset < 0 ? -offset : offset);
    if (reader->attempt)
        snprintf(path + n, sizeof path - (size_t)n, "&attempt=%d", reader->attempt);
    do
        r = client_read_log(reader->client, path, &fault, &status, ret_log);
    while ((r < 0 || status == HTTP_UNAVAILABLE) &&
           session_may_come_back(reader->client, &give_up_us));
    if (r == 0 && status == 200)
        return EXIT_OK;
    print_error("%s", fault.text);
    return r < 0 ? EXIT_UNREACHABLE : EXIT_REFUSED;
}

/* Does the file end before the offset? It began anew (exec/output_writer.h). */
static bool is_shorter(const struct log_reader *reader, const struct client_log *log)
{
    return log->size == 0 && log->next_offset < reader->offset;
}

int log_reader_read(struct log_reader *reader, struct client_log *ret_log)
{
    int code = read_from(reader, reader->offset, ret_log);
    if (code == EXIT_OK)
        reader->offset = is_shorter(reader, ret_log) ? 0 : ret_log->next_offset;
    return code;
}

/* Searches text[0..size) backwards for the start of the last *lines lines, and subtracts the line
 * ends found from *lines. Returns the start's offset in the text, or -1. */
static int64_t find_begin(const char *text, int64_t size, int64_t *lines)
{
    for (int64_t i = size - 1; i >= 0; i--)
        if (text[i] == '\n' && (*lines)-- == 0)
            return i + 1;
    return -1;
}

/* Reads backwards, a piece at a time, until `lines` line ends were counted, and begins after the
 * last one. The beginning of the log, or of its kept part, ends the search. */
int log_reader_seek_lines(struct log_reader *reader, int64_t lines)
{
    struct client_log log;
    int code = read_from(reader, -PIECE, &log);
    int64_t begin = code == EXIT_OK ? log.next_offset - (int64_t)log.size : 0;
    int64_t size = code == EXIT_OK ? (int64_t)log.size : 0;
    if (code == EXIT_OK && lines == 0) {
        reader->offset = log.next_offset;
        free(log.data);
        return EXIT_OK;
    }
    if (size && log.data[size - 1] != '\n')
        lines--; /* the last line, which has no end yet */
    while (code == EXIT_OK) {
        int64_t found = find_begin(log.data, size, &lines);
        bool is_first = begin == 0 || log.dropped > 0;
        free(log.data);
        if (found >= 0 || is_first) {
            reader->offset = found >= 0 ? begin + found : 0;
            break;
        }
        code = read_from(reader, begin > PIECE ? begin - PIECE : 0, &log);
        int64_t piece_begin = code == EXIT_OK ? log.next_offset - (int64_t)log.size : 0;
        size = begin > piece_begin ? begin - piece_begin : 0;
        size = size < (int64_t)log.size ? size : (int64_t)log.size;
        begin = piece_begin;
    }
    return code;
}
