/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of a trace per event, as a story: "t=0 submit a gpus=1", "t=0 place a gpu0 streams",
 * "t=9 wait b: GPU 0: 1.2 GiB short". Scenario tests compare such lines, the simulator prints them.
 */
#ifndef COLLOC_SIM_TRACE_H
#define COLLOC_SIM_TRACE_H

#include <stddef.h>

#include "core/core.h"

/* Seconds with as many decimals as it takes, at most three. Returns `buffer`. */
const char *trace_format_time(int64_t us, char *buffer, size_t size);

/*
 * Writes the line (without a newline) into `buffer`. `name` is what the task is called. Returns
 * false, and writes nothing, for events that stories leave out: samples, ticks, the list of GPUs.
 */
bool trace_format(const struct core *core, const struct event *event, const char *name,
    char *buffer, size_t size);

#endif
