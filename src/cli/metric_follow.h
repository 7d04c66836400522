/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a task's metric while it runs, and reports it at the rungs of its array's stop rule. */
#ifndef COLLOC_CLI_METRIC_FOLLOW_H
#define COLLOC_CLI_METRIC_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/client.h"
#include "core/halving.h"
#include "taskfile/metric_source.h"

struct metric_follow {
    const struct halving_rule *rule;
    struct metric_source source;
    int64_t task;
    int64_t since_s; /* of the wall clock: values in files from before that second are of an earlier
                        attempt */
    pid_t until;     /* returns when this process has ended; 0: only when the task has */
    bool is_tagged;  /* of MLflow: only runs with the task's id as their tag colloc.task count */
};

/* Waits for a daemon that is away. Returns EXIT_OK once the process has ended, or another exit
 * code. */
int metric_follow_run(const struct metric_follow *follow);

/* Reports a value. Returns EXIT_OK; or another exit code, with a message unless the task has
 * ended. */
int metric_report(
    struct client *client, int64_t task, const char *name, int64_t step, double value);

#endif
