/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training process that `colloc calibrate` measures, seen from colloc. Commands and replies are
 * lines of JSON on the worker's standard input and output. Other lines of output, such as a
 * library's warnings, are skipped. Its standard error goes to a file in memory, whose last line
 * explains why it ended.
 */
#include "calibration/calibration_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"

/* ---- starting and ending ---- */

/* The inputs of the child between fork and exec. */
struct launch {
    const struct worker_settings *settings;
    int input, output, errors;
};

static void prepare_process(void *context)
{
    const struct launch *launch = context;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("CUDA_VISIBLE_DEVICES", launch->settings->gpu_uuid, 1);
    setenv("PYTHONUNBUFFERED", "1", 1);
    if (launch->settings->mps_pipe)
        setenv("CUDA_MPS_PIPE_DIRECTORY", launch->settings->mps_pipe, 1);
    dup2(launch->input, STDIN_FILENO);
    dup2(launch->output, STDOUT_FILENO);
    dup2(launch->errors, STDERR_FILENO);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

static int spawn_worker(
    struct worker *worker, const struct worker_settings *settings, struct fault *fault)
{
    int input[2] = {-1, -1}, output[2] = {-1, -1};
    char *const argv[] = {
        (char *)(uintptr_t)settings->python, (char *)(uintptr_t)settings->script, NULL};
    int r = pipe2(input, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0 ? -errno : 0;
    struct launch launch = {settings, input[0], output[1], worker->errors};
    if (r == 0)
        r = spawn_program(argv, prepare_process, &launch, &worker->pid, &worker->pidfd);
    worker->input = input[1];
    worker->output = output[0];
    close_if_open(input[0]);
    close_if_open(output[1]);
    return r < 0 ? fault_set(fault, -r, "%s: %s", settings->python, strerror(-r)) : 0;
}

int worker_start(struct worker *worker, const struct worker_settings *settings, struct fault *fault)
{
    *worker = (struct worker){.input = -1, .output = -1, .pidfd = -1, .signals = settings->signals};
    worker->errors = memfd_create("errors", MFD_CLOEXEC);
    if (worker->errors < 0)
        return fault_set(fault, errno, "no file in memory: %s", strerror(errno));
    return spawn_worker(worker, settings, fault);
}

void worker_stop(struct worker *worker)
{
    if (worker->pid) {
        kill(-worker->pid, SIGKILL);
        while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (worker->errors > 0) {
        close_if_open(worker->input);
        close_if_open(worker->output);
        close_if_open(worker->pidfd);
        close(worker->errors);
    }
    *worker = (struct worker){0};
}

/* ---- commands ---- */

/* Takes over the object. */
static int send_command(struct worker *worker, json_t *object, struct fault *fault)
{
    char *text = json_dumps(object, JSON_COMPACT), line[512];
    int size = snprintf(line, sizeof line, "%s\n", text ? text : "");
    free(text);
    json_decref(object);
    int r = file_write_fd(worker->input, line, (size_t)size);
    return r < 0 ? fault_set(fault, -r, "a training process takes no commands: %s", strerror(-r))
                 : 0;
}

int worker_load(struct worker *worker, const char *model, struct fault *fault)
{
    return send_command(worker, json_pack("{s:s, s:s}", "do", "load", "model", model), fault);
}

int worker_run(struct worker *worker, double seconds, struct fault *fault)
{
    return send_command(worker, json_pack("{s:s, s:f}", "do", "run", "seconds", seconds), fault);
}

int worker_load_data(struct worker *worker, int processes, double seconds, struct fault *fault)
{
    return send_command(worker,
        json_pack("{s:s, s:i, s:f}", "do", "loader", "processes", processes, "seconds", seconds),
        fault);
}

/* ---- replies ---- */

static int explain_end(struct worker *worker, struct fault *fault)
{
    char text[4096];
    off_t size = lseek(worker->errors, 0, SEEK_END), from = size > 4095 ? size - 4095 : 0;
    ssize_t n = pread(worker->errors, text, sizeof text - 1, from);
    text[n > 0 ? n : 0] = '\0';
    for (size_t end = strlen(text); end > 0 && strchr(" \r\n", text[end - 1]); end--)
        text[end - 1] = '\0';
    const char *last = strrchr(text, '\n');
    return fault_set(fault, EPIPE, "a training process ended: %.300s",
        last    ? last + 1
        : *text ? text
                : "-");
}

/* Waits until there is output. Returns 0, WORKER_INTERRUPTED or -ETIMEDOUT. */
static int wait_for_output(const struct worker *worker, int64_t end_us)
{
    for (;;) {
        int64_t left_us = end_us - clock_monotonic_us();
        struct pollfd fds[] = {
            {.fd = worker->output, .events = POLLIN}, {.fd = worker->signals, .events = POLLIN}};
        int n = left_us > 0 ? poll(fds, 2, (int)(left_us / MS_US) + 1) : 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (n < 0)
            continue;
        return fds[1].revents ? WORKER_INTERRUPTED : 0;
    }
}

/* Takes the first line off the buffer. Returns an object that is no reply as NULL. */
static json_t *take_line(struct worker *worker, const char *end)
{
    size_t size = (size_t)(end - worker->line);
    json_t *object = json_loadb(worker->line, size, 0, NULL);
    worker->used -= size + 1;
    memmove(worker->line, end + 1, worker->used);
    if (json_is_object(object))
        return object;
    json_decref(object);
    return NULL;
}

/* Reads until a line is an object. Returns 0, or as worker_read. */
static int read_object(
    struct worker *worker, int64_t end_us, struct fault *fault, json_t **ret_object)
{
    for (;;) {
        char *end = memchr(worker->line, '\n', worker->used);
        if (end && (*ret_object = take_line(worker, end)))
            return 0;
        if (end)
            continue;
        if (worker->used == sizeof worker->line)
            worker->used = 0; /* no reply is so long */
        int r = wait_for_output(worker, end_us);
        if (r == -ETIMEDOUT)
            return fault_set(fault, ETIMEDOUT, "a training process does not reply");
        if (r != 0)
            return r;
        ssize_t n = read(
            worker->output, worker->line + worker->used, sizeof worker->line - worker->used);
        if (n <= 0)
            return explain_end(worker, fault);
        worker->used += (size_t)n;
    }
}

int worker_read(struct worker *worker, int64_t limit_us, struct fault *fault, double *ret_speed)
{
    json_t *object;
    int r = read_object(worker, clock_monotonic_us() + limit_us, fault, &object);
    if (r != 0)
        return r;
    const char *error = json_string_value(json_object_get(object, "error"));
    *ret_speed = json_number_value(json_object_get(object, "steps_per_s"));
    if (error)
        r = fault_set(fault, EIO, "a training failed: %.300s", error);
    json_decref(object);
    return r;
}
