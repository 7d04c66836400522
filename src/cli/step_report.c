/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step runs whether the daemon answers or not: a child process asks, and is waited for with a
 * bound. The end of a step is worth more than its beginning, since a restart of the daemon may fall
 * into it: the child goes on trying while srun has ended.
 *
 *     srun ──► child: POST /v1/tasks/12/steps {"name": "python"}       number through a pipe
 *       │
 *       └────► child: POST ... {"step": 0, "exit_code": 1}             again until it is answered
 */
#include "cli/step_report.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/client.h"
#include "base/clock.h"
#include "base/json_member.h"

enum {
    BEGIN_LIMIT_MS = 2000, /* chosen: a start that waits longer is noticed */
    END_LIMIT_MS = 5000,   /* chosen: a restart of the daemon takes a second or two */
    END_TRIES = 300,       /* each TRY_MS: half a minute */
    TRY_MS = 100,
    NAME_MAX_BYTES = 128, /* as the daemon takes it */
};

/* ---- in the child ---- */

/* Returns the HTTP status; -1: not answered. */
static int send_report(const json_t *body, json_t **ret_reply)
{
    char path[64];
    struct fault fault = {0};
    struct client *client;
    int status = -1;
    snprintf(path, sizeof path, "/v1/tasks/%.20s/steps", getenv("COLLOC_TASK_ID"));
    if (client_open(NULL, &fault, &client) < 0)
        return -1;
    if (client_request(client, "POST", path, body, &fault, &status, ret_reply) < 0)
        status = -1;
    client_close(client);
    return status;
}

static void post_begin(const json_t *body, int answer)
{
    json_t *reply = NULL;
    int number = -1;
    if (send_report(body, &reply) == 201)
        number = (int)member_number(reply, "step", -1);
    if (write(answer, &number, sizeof number) < 0)
        _exit(1);
}

/* Any answer is one: a refused end stays refused. */
static void post_end(const json_t *body, int answer)
{
    json_t *reply = NULL;
    (void)answer;
    for (int i = 0; i < END_TRIES && send_report(body, &reply) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = TRY_MS * 1000000L}, NULL);
}

/* It holds nothing that a script waits for, `$(srun ...)`, and ends with the task. */
static _Noreturn void be_reporter(
    void (*report)(const json_t *body, int answer), const json_t *body, int answer)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    report(body, answer);
    _exit(0);
}

/* ---- in srun ---- */

/* Waits until something can be read, or the other end is closed. */
static bool wait_answer(int fd, int limit_ms)
{
    int64_t until_us = clock_monotonic_us() + (int64_t)limit_ms * 1000;
    int r;
    do {
        int64_t left_us = until_us - clock_monotonic_us();
        struct pollfd polled = {fd, POLLIN, 0};
        r = poll(&polled, 1, left_us > 0 ? (int)(left_us / 1000) : 0);
    } while (r < 0 && errno == EINTR);
    return r > 0;
}

/* Returns what the child has written in time; -1: nothing. */
static int run_reporter(void (*report)(const json_t *body, int answer), json_t *body, int limit_ms)
{
    int ends[2], number = -1;
    bool is_begin = report == post_begin;
    pid_t child = body && pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0)
        be_reporter(report, body, ends[1]);
    json_decref(body);
    if (child < 0)
        return -1;
    close(ends[1]);
    bool is_answered = wait_answer(ends[0], limit_ms);
    if (is_answered && read(ends[0], &number, sizeof number) != sizeof number)
        number = -1;
    close(ends[0]);
    if (is_begin && !is_answered)
        kill(child, SIGKILL);
    if (is_begin || is_answered) /* the end may be reported later */
        waitpid(child, NULL, 0);
    return number;
}

int step_report_begin(const char *name, int processes)
{
    char text[NAME_MAX_BYTES + 1];
    snprintf(text, sizeof text, "%s", name);
    json_t *known = json_string(text); /* NULL: not UTF-8, as the whole or where it was cut */
    json_t *body = json_pack(
        "{s:o, s:i}", "name", known ? known : json_string("srun"), "processes", processes);
    return run_reporter(post_begin, body, BEGIN_LIMIT_MS);
}

void step_report_end(int step, int status)
{
    bool is_signal = WIFSIGNALED(status);
    run_reporter(post_end,
        json_pack("{s:i, s:i}", "step", step, is_signal ? "signal" : "exit_code",
            is_signal ? WTERMSIG(status) : WEXITSTATUS(status)),
        END_LIMIT_MS);
}
