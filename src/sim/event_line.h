/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of the scheduler as text, one line for each event:
 *
 *     t=0 submit a gpus=1 need=unknown
 *     t=0 place a gpu0 streams
 *     t=9 wait b: GPU 0: 1.2 GiB short
 *
 * Scenario tests compare such lines; `colloc simulate --trace-out` writes them.
 */
#ifndef COLLOC_SIM_EVENT_LINE_H
#define COLLOC_SIM_EVENT_LINE_H

#include <stddef.h>

#include "core/core.h"

/*
 * Writes a time in seconds with at most three decimals and no trailing zeros: "1.5".
 *
 * Returns `buffer`.
 */
const char *event_line_format_time(int64_t us, char *buffer, size_t size);

/*
 * Writes the line of an event, without a newline, cut at `size`.
 *
 * name: of the event's task.
 *
 * Returns true; false, with nothing written, for samples, ticks and the list of GPUs.
 */
bool event_line_format(const struct event *event, const char *name, char *buffer, size_t size);

/* Writes the line that says why `task`, the head of its queue, waits. Parameters as above. */
void event_line_format_wait(const struct core *core, uint64_t task, int64_t now_us,
    const char *name, char *buffer, size_t size);

#endif
