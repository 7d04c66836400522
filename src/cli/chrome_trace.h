/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and GPUs over time in Chrome's trace event format, which Perfetto opens. */
#ifndef COLLOC_CLI_CHROME_TRACE_H
#define COLLOC_CLI_CHROME_TRACE_H

#include <jansson.h>
#include <stdio.h>

struct chrome_trace_input {
    const json_t *tasks;  /* array of TASK objects (docs/protocol.md) */
    const json_t *gpus;   /* array of GPU objects */
    const json_t *series; /* array of series of GPUs; or NULL: none are recorded */
    double since, until;  /* seconds since 1970: what lies outside is left out or cut */
};

/*
 * Writes the trace, as one JSON object.
 *
 * Returns how many tasks it shows, or -ENOMEM or another -errno of the file.
 */
int chrome_trace_write(const struct chrome_trace_input *input, FILE *out);

#endif
