/* SPDX-License-Identifier: Apache-2.0 */
/* What only the simulator knows, as files in memory for python/colloc_trace. */
#ifndef COLLOC_CLI_TRACE_FEED_H
#define COLLOC_CLI_TRACE_FEED_H

#include "base/fault.h"
#include "sim/catalogue.h"

enum { TRACE_FEED_PATH_SIZE = 32 };

/*
 * Writes a catalogue as CSV without a line of names: name, GPUs, seconds alone, bytes of memory,
 * and the five figures of its demand ("nan" where unknown).
 *
 * ret_path: a path that this process, and the program that it becomes or starts, can open; its
 *           descriptor stays open
 *
 * Returns 0, or -errno with a fault.
 */
int trace_feed_catalogue(
    const struct catalogue *catalogue, struct fault *fault, char ret_path[TRACE_FEED_PATH_SIZE]);

/*
 * Reads a trace of colloc's own, and writes the submission and length of its jobs, in microseconds,
 * and their GPUs, in the same way.
 *
 * path: "-" is standard input
 *
 * Returns 0, or -errno with a fault, also when a task is not in the catalogue.
 */
int trace_feed_own(const char *path, const struct catalogue *catalogue, struct fault *fault,
    char ret_path[TRACE_FEED_PATH_SIZE]);

#endif
