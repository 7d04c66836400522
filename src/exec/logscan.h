/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches a task's log for the reason of its failure, piece by piece. The log may have any size
 * and hold any bytes; the memory is constant, and a log that has not grown costs one fstat.
 *
 * Of what was appended since the last call, only the last LOGSCAN_WINDOW bytes are read. An error
 * before them did not end the program, which continued to write.
 */
#ifndef COLLOC_EXEC_LOGSCAN_H
#define COLLOC_EXEC_LOGSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "exec/failure.h"
#include "exec/pattern.h"

enum {
    LOGSCAN_WINDOW = 256 * 1024, /* chosen: thousands of lines, read in a millisecond */
    LOGSCAN_PIECE = 4096,        /* the longest line that is searched whole; chosen */
    LOGSCAN_PREFIX = 64, /* that a launcher puts before a line, such as "[rank0]: "; chosen */
};

struct log_match {
    enum log_cause kind; /* LOG_CAUSE_NONE: there is none */
    const char *framework;
    char evidence[EVIDENCE_MAX];
    int64_t at; /* offset of the end of the line */
};

/* The state of a scan. Zeroed, it starts at the beginning of the log; `offset` may be set
 * before. */
struct logscan {
    int64_t offset; /* bytes of the log that were read or skipped */

    char piece[LOGSCAN_PIECE]; /* the incomplete last line, or the latest part of a very long one */
    size_t piece_size;

    bool in_traceback;
    bool chained; /* the next exception was thrown while another was handled, or because of it */
    char prefix[LOGSCAN_PREFIX]; /* that a launcher puts before each line of this traceback, such as
                                    "[rank0]: " */

    struct log_match shortage;    /* the last line that reports a shortage of GPU memory */
    struct log_match cause;       /* the last line that may be the reason */
    struct log_match consequence; /* the first line that reports another process's failure */
    char last_line[EVIDENCE_MAX]; /* the last one that is not blank */
};

/*
 * Scans the text appended to a file since the last call; all of it if the file has become shorter.
 *
 * fd: in any other file than a regular one nothing is read.
 *
 * Returns 0 or -errno.
 */
int logscan_update(struct logscan *scan, int fd);

/* The log continues at the beginning of another file. */
void logscan_next_file(struct logscan *scan);

/* Scans bytes, as if they had been appended to the log. */
void logscan_feed(struct logscan *scan, struct span bytes);

/* The log has ended: scans the last line even if no newline ends it. */
void logscan_finish(struct logscan *scan);

#endif
