/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "bench/crew.h"
#include "bench/failure.h"

#define PATIENCE_US (5 * SECOND_US) /* from SIGTERM to SIGKILL */
enum { READS_LEFT_MAX = 1024 };     /* more than a pipe holds */

struct worker {
    pid_t pid;
    int pidfd, output;
    struct told_stream stream;
};

struct shift {
    const struct crew *crew;
    struct fault *fault;
    struct worker workers[BENCH_TASKS_MAX];
    struct crew_result *results;
    int started, alive;
    int64_t next_look_us, deadline_us;
    int answer;
};

static double unix_s(void)
{
    return (double)clock_wall_us() / (double)SECOND_US;
}

/* ---- starting ---- */

static void make_log_path(const struct crew *crew, int i, char *path, size_t size)
{
    snprintf(path, size, "%s.%d", crew->log_path, i);
}

static void set_environment(const struct crew *crew, int i)
{
    char share[8];
    if (crew->places)
        setenv("CUDA_VISIBLE_DEVICES", crew->places[i], 1);
    if (crew->mps_pipe)
        setenv("CUDA_MPS_PIPE_DIRECTORY", crew->mps_pipe, 1);
    if (crew->mps_pipe && crew->group->tasks[i].threads != BENCH_THREADS_ALL) {
        snprintf(share, sizeof share, "%d", crew->group->tasks[i].threads);
        setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", share, 1);
    }
}

/* One of the group on its way to be a program. */
struct birth {
    const struct crew *crew;
    int i, output;
};

/* In a process group of its own, so that it can be ended with all its children. */
static void become(void *context)
{
    const struct birth *birth = context;
    char path[4096];
    sigset_t none;
    make_log_path(birth->crew, birth->i, path, sizeof path);
    int errors = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    set_environment(birth->crew, birth->i);
    dup2(empty, STDIN_FILENO);
    dup2(birth->output, STDOUT_FILENO);
    if (errors >= 0)
        dup2(errors, STDERR_FILENO);
}

static int start(struct shift *shift, int i)
{
    struct worker *worker = &shift->workers[i];
    char *const *words = shift->crew->group->tasks[i].words;
    int output[2];
    if (pipe2(output, O_CLOEXEC) < 0)
        return fault_set(shift->fault, errno, "no pipe: %s", strerror(errno));
    struct birth birth = {shift->crew, i, output[1]};
    shift->results[i].started_unix_s = unix_s();
    int r = spawn_program(words, become, &birth, &worker->pid, &worker->pidfd);
    close(output[1]);
    if (r < 0) {
        close(output[0]);
        return fault_set(shift->fault, -r, "%s: %s", words[0], strerror(-r));
    }
    worker->output = output[0];
    *shift->results[i].failure = '\0';
    shift->started++;
    shift->alive++;
    return 0;
}

/* ---- listening and waiting ---- */

static void listen_to(struct shift *shift, int i)
{
    struct worker *worker = &shift->workers[i];
    char bytes[4096];
    ssize_t n = read(worker->output, bytes, sizeof bytes);
    if (n > 0)
        told_bytes(&worker->stream, &shift->results[i].told, bytes, (size_t)n);
    else if (n == 0 || errno != EINTR) {
        close(worker->output);
        worker->output = -1;
    }
}

/* What it said last may still be in the pipe; a grandchild that keeps it open, and full, is not
 * waited for. */
static void listen_to_the_end(struct shift *shift, int i)
{
    struct pollfd fd = {.fd = shift->workers[i].output, .events = POLLIN};
    for (int n = 0; n < READS_LEFT_MAX && shift->workers[i].output >= 0 && poll(&fd, 1, 0) > 0; n++)
        listen_to(shift, i);
    if (shift->workers[i].output >= 0)
        close(shift->workers[i].output);
    shift->workers[i].output = -1;
}

static void bury(struct shift *shift, int i)
{
    struct worker *worker = &shift->workers[i];
    char path[4096];
    int status = 0;
    shift->results[i].ended_unix_s = unix_s();
    kill(-worker->pid,
        SIGKILL); /* whom it left behind; while it is not reaped the number is still its group's */
    listen_to_the_end(shift, i);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    make_log_path(shift->crew, i, path, sizeof path);
    failure_explain(status, path, &shift->results[i]);
    close(worker->pidfd);
    worker->pidfd = -1;
    shift->alive--;
}

static void kill_all(struct shift *shift, int signal)
{
    for (int i = 0; i < shift->started; i++)
        if (shift->workers[i].pidfd >= 0)
            kill(-shift->workers[i].pid, signal);
}

static void end_early(struct shift *shift, int answer)
{
    kill_all(shift, shift->answer ? SIGKILL : SIGTERM);
    shift->answer = answer;
    shift->deadline_us = clock_monotonic_us() + PATIENCE_US;
}

static int wait_ms(const struct shift *shift)
{
    int64_t until_us = shift->next_look_us < shift->deadline_us ? shift->next_look_us
                                                                : shift->deadline_us;
    int64_t left_us = until_us - clock_monotonic_us();
    return left_us <= 0 ? 0 : (int)((left_us + MS_US - 1) / MS_US);
}

static void wait_once(struct shift *shift)
{
    struct pollfd fds[2 * BENCH_TASKS_MAX + 1] = {
        {.fd = shift->answer ? -1 : shift->crew->signals, .events = POLLIN}};
    int n = shift->started;
    for (int i = 0; i < n; i++) {
        fds[1 + 2 * i] = (struct pollfd){.fd = shift->workers[i].output, .events = POLLIN};
        fds[2 + 2 * i] = (struct pollfd){.fd = shift->workers[i].pidfd, .events = POLLIN};
    }
    if (poll(fds, 1 + 2 * (nfds_t)n, wait_ms(shift)) < 0)
        return;
    for (int i = 0; i < n; i++) {
        if (fds[1 + 2 * i].revents)
            listen_to(shift, i);
        if (fds[2 + 2 * i].revents)
            bury(shift, i);
    }
    if (fds[0].revents)
        end_early(shift, CREW_INTERRUPTED);
}

static void keep_time(struct shift *shift)
{
    int64_t now_us = clock_monotonic_us();
    if (now_us >= shift->next_look_us) {
        shift->crew->look(shift->crew->context);
        shift->next_look_us += shift->crew->period_us;
        if (shift->next_look_us < now_us)
            shift->next_look_us = now_us + shift->crew->period_us;
    }
    if (now_us >= shift->deadline_us)
        end_early(shift, shift->answer ? shift->answer : CREW_TOO_LONG);
}

/* Those that are due: all at once, or the next one. */
static int start_due(struct shift *shift)
{
    const struct bench_group *group = shift->crew->group;
    bool serial = group->sharing == BENCH_SERIAL;
    int r = 0;
    while (r == 0 && !shift->answer && shift->started < group->n_tasks && !(serial && shift->alive))
        r = start(shift, shift->started);
    return r;
}

int crew_of_processes(const struct crew *crew, struct fault *fault, struct crew_result *ret_results)
{
    struct shift *shift = calloc(1, sizeof *shift);
    if (!shift)
        return fault_set(fault, ENOMEM, "out of memory");
    int64_t now_us = clock_monotonic_us();
    *shift = (struct shift){
        .crew = crew, .fault = fault, .results = ret_results, .next_look_us = now_us};
    shift->deadline_us = now_us + crew->limit_us;
    for (int i = 0; i < crew->group->n_tasks; i++) {
        shift->workers[i].output = shift->workers[i].pidfd = -1;
        ret_results[i] = (struct crew_result){.exit_code = -1, .failure = "never started"};
    }
    int r = start_due(shift);
    if (r < 0)
        end_early(shift, CREW_INTERRUPTED);
    while (shift->alive) {
        wait_once(shift);
        keep_time(shift);
        int more = r < 0 ? 0 : start_due(shift);
        r = more < 0 ? more : r;
    }
    int answer = shift->answer;
    free(shift);
    return r < 0 ? r : answer;
}
