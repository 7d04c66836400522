/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop over the rows of a table, and what it does with a row that cannot be read. A wrong row
 * is counted and the next one read, so that one mistake in a log of months does not hide the rest.
 * If the file ends in the wrong row, it was probably cut off there.
 */
#include "trace/log_table.h"

#include <errno.h>

/* Returns 0 to go on with the next row, or ends the reading as log_table_read. */
static int skip_row(
    const struct columns *columns, struct cluster_log *log, int r, struct fault *fault)
{
    if (r != -EINVAL || feof(columns->file))
        return r == -EINVAL ? fault_prefix(fault, -EBADMSG, "the log breaks off") : r;
    cluster_log_not_understood(log, fault);
    return 0;
}

int log_table_read(struct columns *columns,
    int (*read_row)(void *context, struct cluster_log *log, struct fault *fault), void *context,
    struct cluster_log *log, struct fault *fault)
{
    int r = 0, more = 1;
    while (r == 0 && more) {
        more = columns_next(columns, fault);
        if (more < 0)
            r = skip_row(columns, log, more, fault);
        else if (more == 1)
            r = read_row(context, log, fault);
    }
    return r;
}
