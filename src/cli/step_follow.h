/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the lines of a task's output that mark a step: `colloc step --pattern`. */
#ifndef COLLOC_CLI_STEP_FOLLOW_H
#define COLLOC_CLI_STEP_FOLLOW_H

#include <stdint.h>
#include <sys/types.h>

struct step_follow {
    const char *pattern;
    int64_t task;
    pid_t until;               /* the process that ends with the steps */
    int (*report)(long steps); /* of the preloaded library; 0: they are counted */
};

/* Reads the output and reports its steps until the process has ended. Returns an exit code. */
int step_follow_run(const struct step_follow *follow);

#endif
