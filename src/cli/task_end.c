/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the end of a task, in requests of some seconds, each of which the daemon answers when
 * the task ends.
 *
 *     GET /v1/tasks/12/wait?timeout_s=30   the daemon holds the request; 200 when the task has
 *                                         ended or 30 s are over: then the next request follows
 *
 * So an end is known at once without polling. If a restart of the daemon cuts a connection, only
 * one request fails: the next one is tried for a minute.
 */
#include "cli/task_end.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

enum { ROUND_S = 30 }; /* chosen: below the daemon's WAIT_MAX_S */

/* As a shell would exit: the program's own code, or 128 and the signal. Ends that only colloc knows
 * have codes of their own (command.h). */
int task_end_exit_code(const json_t *task)
{
    const char *state = member_text(task, "state", "");
    double exit_code = member_number(task, "exit_code", 0),
           signal = member_number(task, "signal", 0);
    if (strcmp(state, "COMPLETED") == 0 || strcmp(state, "STOPPED") == 0)
        return EXIT_OK;
    if (strcmp(state, "OUT_OF_MEMORY") == 0)
        return EXIT_OUT_OF_MEMORY;
    if (strcmp(state, "TIMEOUT") == 0)
        return EXIT_TIMEOUT;
    if (strcmp(state, "CANCELLED") == 0)
        return EXIT_CANCELLED;
    if (signal >= 1 && signal < 128)
        return EXIT_BY_SIGNAL + (int)signal;
    return exit_code >= 1 && exit_code < 256 ? (int)exit_code : EXIT_REFUSED;
}

/* The message when the wait is interrupted. Formatted before, since a signal handler must not. */
static char interrupted[128];

static void on_interrupt(int number)
{
    ssize_t ignored = write(STDERR_FILENO, interrupted, strlen(interrupted));
    (void)ignored;
    _exit(EXIT_BY_SIGNAL + number);
}

static void expect_interrupt(int64_t id)
{
    snprintf(interrupted, sizeof interrupted,
        "\ncolloc: task %" PRId64 " continues; `colloc cancel %" PRId64 "` ends it\n", id, id);
    signal(SIGINT, on_interrupt);
}

int task_end_wait(struct client *client, int64_t id, int64_t deadline_us, json_t **ret_reply)
{
    char path[96];
    expect_interrupt(id);
    for (;;) {
        int64_t left_us = deadline_us - clock_monotonic_us();
        int64_t left_s = left_us <= 0 ? 0 : (left_us + SECOND_US - 1) / SECOND_US;
        /* The first request returns at once: after its answer, the daemon is known to exist, and a
         * restart is waited for. */
        int64_t round_s = client_was_answered(client) ? ROUND_S : 0;
        snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/wait?timeout_s=%" PRId64, id,
            left_s < round_s ? left_s : round_s);
        int code = session_call_patiently(client, "GET", path, ret_reply);
        if (code != EXIT_OK || json_object_get(*ret_reply, "array") ||
            task_has_ended(json_object_get(*ret_reply, "task")))
            return code;
        json_decref(*ret_reply);
        *ret_reply = NULL;
        if (left_s == 0) {
            print_error("task %" PRId64 " has not ended yet", id);
            return EXIT_TIMEOUT;
        }
    }
}

/* "Task 12 COMPLETED (waited 1:10, ran 3:04)", "Task 13 FAILED (waited 0:00, ran 0:02): ..." with the
 * reason. */
void task_end_print(const json_t *task)
{
    char wait[CELL_SIZE], run[CELL_SIZE], id[CELL_SIZE];
    const char *reason = member_text(task, "reason_text", NULL);
    if (!reason || !*reason)
        reason = member_text(task, "reason", "None");
    printf("Task %s %s (waited %s, ran %s)", task_id_text(task, id, sizeof id),
        member_text(task, "state", "?"), seconds_text(json_object_get(task, "wait_s"), wait),
        seconds_text(json_object_get(task, "exec_s"), run));
    if (strcmp(member_text(task, "state", ""), "COMPLETED") != 0) {
        fputs(": ", stdout);
        print_safe(stdout, reason);
    }
    putchar('\n');
    fflush(stdout);
}

static void take_end(const struct task_end_visitor *visitor, const json_t *task, int *first)
{
    visitor->on_ended(visitor->context, task);
    *first = *first == EXIT_OK ? task_end_exit_code(task) : *first;
}

/* Waits for the tasks of an array, by rising id: most have ended when their turn comes. */
static int wait_for_array(struct client *client, const json_t *array, int64_t deadline_us,
    const struct task_end_visitor *visitor, int *first)
{
    int64_t id = (int64_t)member_number(array, "first", 1),
            last = (int64_t)member_number(array, "last", 0);
    int code = EXIT_OK;
    for (; id <= last && code == EXIT_OK; id++) {
        json_t *reply;
        code = task_end_wait(client, id, deadline_us, &reply);
        if (code != EXIT_OK)
            break;
        take_end(visitor, json_object_get(reply, "task"), first);
        json_decref(reply);
    }
    return code;
}

/* Of an array each task is waited for; `first` keeps the first exit code that is no success. */
int task_end_wait_for_all(struct client *client, int64_t id, int64_t deadline_us,
    const struct task_end_visitor *visitor, int *first)
{
    json_t *reply;
    int code = task_end_wait(client, id, deadline_us, &reply);
    if (code != EXIT_OK)
        return code;
    const json_t *array = json_object_get(reply, "array");
    if (array)
        code = wait_for_array(client, array, deadline_us, visitor, first);
    else
        take_end(visitor, json_object_get(reply, "task"), first);
    json_decref(reply);
    return code;
}
