/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a task's log for the reason of its failure: any bytes, any size, a little at a time.
 * Memory is constant; a log that has not grown costs one fstat; of what was written since the last
 * look at most the last LOGSCAN_WINDOW bytes are read, and only what they hold counts: an error
 * that the program lived through and wrote that much after did not end it.
 */
#ifndef COLLOC_EXEC_LOGSCAN_H
#define COLLOC_EXEC_LOGSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "exec/failure.h"
#include "exec/pattern.h"

enum { LOGSCAN_WINDOW = 256 * 1024, LOGSCAN_PIECE = 4096, LOGSCAN_PREFIX = 64 };

struct log_match {
    enum log_cause kind; /* LOG_CAUSE_NONE: there is none */
    const char *framework;
    char evidence[EVIDENCE_MAX];
    int64_t at; /* offset just behind the line */
};

/* All zero is a scan from the start of a log; with an offset, from there. */
struct logscan {
    int64_t offset; /* how far the log was seen */

    char piece[LOGSCAN_PIECE]; /* the line that is not complete yet, or the latest part of a very
                                  long one */
    size_t piece_size;

    bool in_traceback;
    bool chained; /* the next exception was thrown while another was handled, or because of it */
    char prefix[LOGSCAN_PREFIX]; /* what a launcher puts before each line of this traceback, such as
                                    "[rank0]: " */

    struct log_match shortage;    /* the last time that GPU memory was short */
    struct log_match cause;       /* the last that would be the reason */
    struct log_match consequence; /* the first that only passes a failure on */
    char last_line[EVIDENCE_MAX]; /* that was not blank */
};

/*
 * Looks at what was appended to the regular file `fd` since the last call (from the start when it
 * has become shorter). Other kinds of file have nothing to say. 0 or -errno.
 */
int logscan_update(struct logscan *scan, int fd);

/* The same with bytes at hand. */
void logscan_feed(struct logscan *scan, struct span bytes);

/* No more will come: the last line is complete though it has no newline. */
void logscan_finish(struct logscan *scan);

#endif
