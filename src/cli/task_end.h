/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the end of a task and turns it into an exit code, for `wait` and `submit --wait`. */
#ifndef COLLOC_CLI_TASK_END_H
#define COLLOC_CLI_TASK_END_H

#include <jansson.h>
#include <stdint.h>

#include "api/client.h"

enum {
    EXIT_OUT_OF_MEMORY = 75, /* EX_TEMPFAIL of sysexits.h: may succeed later */
    EXIT_TIMEOUT = 124,      /* as timeout(1) */
    EXIT_CANCELLED = 130,    /* as shells report an interrupted program */
    EXIT_BY_SIGNAL = 128,    /* plus the signal's number */
};

/* Returns 0 for a completed task; the exit code with which the task failed; one of the above; else
 * EXIT_REFUSED. `task`: a TASK object. */
int task_end_exit_code(const json_t *task);

/*
 * Waits until the task has ended. Waits up to a minute for a daemon that restarts meanwhile. An
 * interrupt (Ctrl-C) prints that the task continues, and ends the program with status 130.
 *
 * deadline_us: by clock_monotonic_us; TIME_NEVER: no limit.
 * ret_reply:   with EXIT_OK, {"task": ...}, for the caller to release.
 *
 * Returns EXIT_OK; EXIT_TIMEOUT, with a message; or as session_call.
 */
int task_end_wait(struct client *client, int64_t id, int64_t deadline_us, json_t **ret_reply);

/* Prints one line: "Task 12 COMPLETED (waited 1:10, ran 3:04)", and the reason if it did not complete. */
void task_end_print(const json_t *task);

/* Receives each task that has ended. */
struct task_end_visitor {
    void *context;
    void (*on_ended)(void *context, const json_t *task);
};

/*
 * Waits until a task has ended, or all tasks of an array have.
 *
 * first: the exit code of the first that did not complete; EXIT_OK before
 *
 * Returns as task_end_wait.
 */
int task_end_wait_for_all(struct client *client, int64_t id, int64_t deadline_us,
    const struct task_end_visitor *visitor, int *first);

#endif
