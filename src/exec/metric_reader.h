/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a task's metric while it runs, for the stop rule of its array: `colloc metric --from`;
 * and its steps. */
#ifndef COLLOC_EXEC_METRIC_READER_H
#define COLLOC_EXEC_METRIC_READER_H

#include <stddef.h>

#include "exec/spec.h"

/* Finds the program `colloc`, beside this program. Call it before the process becomes another
 * user. Returns 0, or -ENOENT. */
int metric_reader_find(char *program, size_t size);

/*
 * Starts a reader of this process, which is about to execute the task's program (companion.h).
 *
 * program: as metric_reader_find found it
 * spec:    has `metric_from` and `metric_rule`
 */
void metric_reader_start(const char *program, const struct attempt_spec *spec);

/* Starts one for its steps: `colloc step --pattern`. `spec`: has `step_pattern`. */
void step_reader_start(const char *program, const struct attempt_spec *spec);

#endif
