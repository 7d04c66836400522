/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of a log that is a table. A row that cannot be read is a job that is not
 * understood; where the file ends within it, the log breaks off. */
#ifndef COLLOC_TRACE_LOG_TABLE_H
#define COLLOC_TRACE_LOG_TABLE_H

#include "base/columns.h"
#include "trace/cluster_log.h"

/*
 * Reads all rows.
 *
 * columns:  open; stays open
 * read_row: is called for each row, and returns 0 or -errno with a fault, which ends the reading
 * context:  passed to `read_row`
 *
 * Returns 0; -EBADMSG with a fault: the log breaks off; or another -errno with a fault.
 */
int log_table_read(struct columns *columns,
    int (*read_row)(void *context, struct cluster_log *log, struct fault *fault), void *context,
    struct cluster_log *log, struct fault *fault);

#endif
