/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speaks with a child process in lines. Two pipes and poll. The child is killed by its pidfd when
 * it is not needed any more.
 *
 *     colloc doctor  ---- request line ---->  child (colloc-checkpoint, or the probe)
 *                    <---- answer line -----
 *
 * The child may call a driver that never returns. So each answer has a time limit, and the end is a
 * SIGKILL that is waited for a second: a process that the kernel cannot end is left behind rather
 * than waited for.
 *
 * All GPUs are visible to it, and no MPS control daemon is, because a client of MPS cannot be
 * suspended. What it writes to stderr is dropped.
 */
#include "doctor/line_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"

struct preparation {
    int input, output;
    const char *preload;
};

static void prepare_child(void *context)
{
    const struct preparation *with = context;
    dup2(with->input, STDIN_FILENO);
    dup2(with->output, STDOUT_FILENO);
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (quiet >= 0)
        dup2(quiet, STDERR_FILENO);
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
    if (with->preload)
        setenv("LD_PRELOAD", with->preload, 1);
}

int line_child_start(
    struct line_child *child, const char *program, const char *argument, const char *preload)
{
    char *argv[] = {(char *)program, (char *)argument, NULL};
    int to[2], from[2];
    *child = (struct line_child){.pidfd = -1, .to = -1, .from = -1};
    if (pipe2(to, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(from, O_CLOEXEC) < 0) {
        int errnum = errno;
        close(to[0]);
        close(to[1]);
        return -errnum;
    }
    struct preparation with = {to[0], from[1], preload};
    child->to = to[1];
    child->from = from[0];
    int r = spawn_program(argv, prepare_child, &with, &child->pid, &child->pidfd);
    close(to[0]);
    close(from[1]);
    if (r < 0) {
        child->pid = 0;
        line_child_end(child);
    }
    return r;
}

static int wait_readable(int fd, int64_t end_us)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    int64_t left_us = end_us - clock_monotonic_us();
    int n = left_us > 0 ? poll(&readable, 1, (int)(left_us / MS_US) + 1) : 0;
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    return n == 0 ? -ETIMEDOUT : 0;
}

/* Byte by byte: lines are short and few. */
static int read_line(int fd, int64_t end_us, char *line, size_t size)
{
    size_t used = 0;
    for (;;) {
        char byte;
        int r = wait_readable(fd, end_us);
        if (r < 0)
            return r;
        ssize_t n = read(fd, &byte, 1);
        if (n <= 0)
            return -EPIPE;
        if (byte == '\n')
            break;
        if (used + 1 < size)
            line[used++] = byte;
    }
    line[used] = '\0';
    return 0;
}

int line_child_ask(
    struct line_child *child, const char *request, int64_t limit_us, char *ret_answer, size_t size)
{
    if (request && file_write_fd(child->to, request, strlen(request)) < 0)
        return -EPIPE;
    return read_line(child->from, clock_monotonic_us() + limit_us, ret_answer, size);
}

void line_child_end(struct line_child *child)
{
    if (child->pid) {
        struct pollfd gone = {.fd = child->pidfd, .events = POLLIN};
        kill(child->pid, SIGKILL);
        if (poll(&gone, 1, 1000) > 0)
            waitpid(child->pid, NULL, 0);
        close(child->pidfd);
    }
    if (child->to >= 0)
        close(child->to);
    if (child->from >= 0)
        close(child->from);
    *child = (struct line_child){.pidfd = -1, .to = -1, .from = -1};
}
