/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and GPUs over time in Chrome's trace event format, which Perfetto opens. */
#ifndef COLLOC_DAEMON_HTTP_CHROME_TRACE_H
#define COLLOC_DAEMON_HTTP_CHROME_TRACE_H

#include <jansson.h>
#include <stddef.h>

struct chrome_trace;

/* The metrics of GPUs that a trace has, as the query `metric` of GET /v1/gpus/NAME/series. */
#define CHROME_TRACE_METRICS "mem_used_mib,external_mem_mib,smact,dram_active,power_w,temperature_c"
enum { CHROME_TRACE_METRIC_COUNT = 6 };

/*
 * Begins a trace.
 *
 * since, until: seconds since 1970; what lies outside is left out or cut
 *
 * Returns NULL when memory is out; else for chrome_trace_free.
 */
struct chrome_trace *chrome_trace_create(double since, double until);

/* Adds a GPU object of docs/protocol.md. GPUs come first, to be listed in their order. */
void chrome_trace_add_gpu(struct chrome_trace *trace, const json_t *gpu);

/* Adds a TASK object, if any of it lies within the times. */
void chrome_trace_add_task(struct chrome_trace *trace, const json_t *task);

/* Adds the counters of a series of a GPU. */
void chrome_trace_add_series(struct chrome_trace *trace, const json_t *series);

/* Returns the bytes that the trace has so far. */
size_t chrome_trace_size(const struct chrome_trace *trace);

/*
 * Completes the trace.
 *
 * note: its missing parts, for people; "": none
 *
 * Returns its text, for the caller to free; NULL when memory was out.
 */
char *chrome_trace_end(struct chrome_trace *trace, const char *note);

/* Releases a trace. */
void chrome_trace_free(struct chrome_trace *trace);

#endif
