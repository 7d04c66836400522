/* SPDX-License-Identifier: Apache-2.0 */
/* How a task's end becomes an exit code, for `wait` and `submit --wait`. */
#ifndef COLLOC_CLI_TASK_END_H
#define COLLOC_CLI_TASK_END_H

#include <jansson.h>
#include <stdint.h>

#include "api/client.h"

enum {
    EXIT_OUT_OF_MEMORY = 75, /* EX_TEMPFAIL of sysexits.h: may do another time */
    EXIT_TIMEOUT = 124,      /* as timeout(1) */
    EXIT_CANCELLED = 130,    /* as a shell says of an interrupted program */
    EXIT_BY_SIGNAL = 128,    /* plus the signal */
};

/* 0 when it completed; its own exit code when it failed with one, else one of the above, else
 * EXIT_REFUSED. */
int task_end_exit_code(const json_t *task);

/*
 * Waits until the task has ended, at most until `deadline_us` (clock_monotonic_us; INT64_MAX: for
 * ever). EXIT_OK with the reply {"task": ...}, EXIT_TIMEOUT (said so), or session_call's codes. A
 * daemon that goes away meanwhile is given a minute to come back. An interrupt (Ctrl-C) says that
 * the task goes on, and ends the program with 130.
 */
int task_end_wait(struct client *client, int64_t id, int64_t deadline_us, json_t **ret_reply);

/* One line on stdout: "Task 12 COMPLETED in 3:04", with the reason when it ended otherwise. */
void task_end_print(const json_t *task);

#endif
