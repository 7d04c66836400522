/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a cluster's log has. */
#ifndef COLLOC_CLI_TRACE_FORMAT_H
#define COLLOC_CLI_TRACE_FORMAT_H

#include "base/text.h"

/* The values of `trace import --from`, ended by NULL. */
extern const char *const trace_formats[];

/*
 * Recognises the format of a log by its first line; for the table of tasks of Alibaba's log of 2020
 * this needs the line of names, which the published files lack.
 *
 * head: the beginning of the log; may end anywhere
 *
 * Returns the format, or NULL.
 */
const char *trace_format_of(struct span head);

/* The same of a file. Returns NULL also for one that cannot be read, and for "-" and pipes: what
 * is read of these is gone. */
const char *trace_format_of_file(const char *path);

#endif
