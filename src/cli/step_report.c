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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/client.h"
#include "base/child_answer.h"
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

/* It holds nothing that a script waits for, `$(srun ...)`, and ends with the task. */
static void become_reporter(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int post_begin(void *body, int fd)
{
    json_t *reply = NULL;
    int number = -1;
    become_reporter();
    if (send_report(body, &reply) == 201)
        number = (int)member_number(reply, "step", -1);
    return write(fd, &number, sizeof number) < 0;
}

/* Any answer is one: a refused end stays refused. */
static int post_end(void *body, int fd)
{
    json_t *reply = NULL;
    (void)fd;
    become_reporter();
    for (int i = 0; i < END_TRIES && send_report(body, &reply) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = TRY_MS * 1000000L}, NULL);
    return 0;
}

/* ---- in srun ---- */

int step_report_begin(const char *name, int processes)
{
    char text[NAME_MAX_BYTES + 1];
    snprintf(text, sizeof text, "%s", name);
    json_t *known = json_string(text); /* NULL: not UTF-8, as the whole or where it was cut */
    json_t *body = json_pack(
        "{s:o, s:i}", "name", known ? known : json_string("srun"), "processes", processes);
    struct child_answer child;
    int number = -1, r = body ? child_answer_start(&child, post_begin, body) : -ENOMEM;
    json_decref(body);
    if (r < 0)
        return -1;
    ssize_t n = child_answer_read(&child, BEGIN_LIMIT_MS, &number, sizeof number);
    child_answer_end(&child, n < 0 ? CHILD_KILLED : CHILD_AWAITED);
    return n == sizeof number ? number : -1;
}

void step_report_end(int step, int status)
{
    bool is_signal = WIFSIGNALED(status);
    json_t *body = json_pack("{s:i, s:i}", "step", step, is_signal ? "signal" : "exit_code",
        is_signal ? WTERMSIG(status) : WEXITSTATUS(status));
    struct child_answer child;
    int r = body ? child_answer_start(&child, post_end, body) : -ENOMEM;
    json_decref(body);
    if (r == 0) { /* the end may be reported later */
        ssize_t n = child_answer_read(&child, END_LIMIT_MS, NULL, 0);
        child_answer_end(&child, n < 0 ? CHILD_LEFT : CHILD_AWAITED);
    }
}
