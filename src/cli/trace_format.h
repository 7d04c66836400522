/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a cluster's log has. */
#ifndef COLLOC_CLI_TRACE_FORMAT_H
#define COLLOC_CLI_TRACE_FORMAT_H

#include "base/text.h"

/* The values of `trace import --from`, ended by NULL. */
extern const char *const trace_formats[];

/* The same of a file. Returns NULL also for one that cannot be read, and for "-" and pipes: what
 * is read of these is gone. */
const char *trace_format_of_file(const char *path);

#endif
