/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the output that one attempt of a task wrote to one of its streams, piece by piece. */
#ifndef COLLOC_CLI_LOG_READER_H
#define COLLOC_CLI_LOG_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "api/client.h"

struct log_reader {
    struct client *client;
    const char *stream; /* "stdout" or "stderr" */
    int64_t id, offset;
    int attempt; /* the one to read; 0: the last */
};

/*
 * Reads the next piece: the present output from `offset` on, at most 256 KiB. A file that has
 * become shorter gives an empty piece, and is read from its beginning next. Waits up to a minute
 * for a daemon that restarts.
 *
 * ret_log: the piece; ret_log->data is for the caller to free.
 *
 * Returns EXIT_OK; or EXIT_REFUSED or EXIT_UNREACHABLE, with a message printed.
 */
int log_reader_read(struct log_reader *reader, struct client_log *ret_log);

/*
 * Sets `offset` to the start of the last `lines` lines of the present output. An incomplete last
 * line counts.
 *
 * Returns as log_reader_read.
 */
int log_reader_seek_lines(struct log_reader *reader, int64_t lines);

#endif
