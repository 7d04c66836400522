/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what one attempt of a task has written to one of its streams, piece by piece. */
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
 * Reads the next piece: what is there from `offset` on, at most 256 KiB. A daemon that is away for a
 * moment is waited for.
 *
 * ret_log: the piece; ret_log->data is the caller's to free.
 *
 * Returns EXIT_OK; EXIT_REFUSED or EXIT_UNREACHABLE after having told the user.
 */
int log_reader_read(struct log_reader *reader, struct client_log *ret_log);

/*
 * Sets `offset` to the begin of the last `lines` lines that are there now; a last line that has no
 * end yet counts.
 *
 * Returns as log_reader_read.
 */
int log_reader_seek_lines(struct log_reader *reader, int64_t lines);

#endif
