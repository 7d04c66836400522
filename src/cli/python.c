/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs colloc's Python programs: finds their folder and the interpreter, collects the output,
 * bounds its size and time.
 *
 * The modules are searched beside colloc (an installation, or a build). The interpreter is the one
 * that the user's shell would run, because that has the user's PyTorch, and the user's PYTHONPATH
 * is kept. A program whose output is collected runs in a separate process group, which is killed
 * when it takes too long, and with colloc.
 */
#include "cli/python.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/print.h"
#include "cli/support.h"
#include "gpu/program.h"

enum { PIECE = 65536, COMPLAINT_MOST = 16384 };

static const char *interpreter_of(const char *named)
{
    return named ? named : "python3";
}

/* Puts the folder before the user's PYTHONPATH, which stays. */
static void add_to_path(const char *folder)
{
    char path[2 * PATH_MAX];
    const char *own = getenv("PYTHONPATH");
    if (own && *own && snprintf(path, sizeof path, "%s:%s", folder, own) < (int)sizeof path)
        folder = path;
    setenv("PYTHONPATH", folder, 1);
}

static size_t count_words(const char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

/* Becomes a Python module. Returns only if that fails: -errno. */
static int exec_module(const char *interpreter, const char *const *words, const char *folder)
{
    size_t n = count_words(words);
    const char **argv = calloc(n + 3, sizeof *argv);
    if (!argv)
        return -ENOMEM;
    argv[0] = interpreter;
    argv[1] = "-m";
    memcpy(&argv[2], words, n * sizeof *words);
    add_to_path(folder);
    execvp(interpreter, (char *const *)(uintptr_t)argv);
    int r = -errno;
    free(argv);
    return r;
}

/* The same in a child process, which ends if that fails. */
_Noreturn static void exec_module_or_exit(
    const char *interpreter, const char *const *words, const char *folder)
{
    exec_module(interpreter, words, folder);
    _exit(127);
}

/* Finds the folder of the modules (PATH_MAX bytes), and that there is an interpreter. */
static int find_modules(const char *interpreter, char *ret_folder, struct fault *fault)
{
    char path[PATH_MAX];
    if (support_find("python", ret_folder, PATH_MAX) < 0)
        return fault_set(
            fault, ENOENT, "cannot find colloc's Python programs where they were installed");
    if (!program_find(interpreter, path, sizeof path))
        return fault_set(fault, ENOENT,
            "%s: no such program: give a Python interpreter with --python", interpreter);
    return 0;
}

int python_become(const char *interpreter, const char *const *words, struct fault *fault)
{
    char folder[PATH_MAX];
    const char *name = interpreter_of(interpreter);
    int r = find_modules(name, folder, fault);
    if (r < 0)
        return r;
    fflush(NULL);
    r = exec_module(name, words, folder);
    return fault_set(fault, -r, "cannot run %s: %s", name, strerror(-r));
}

int python_feed(const char *const *words, int input, pid_t *ret_pid)
{
    char path[PATH_MAX];
    int r = support_find("python", path, sizeof path);
    if (r < 0)
        return r;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (dup2(input, STDIN_FILENO) >= 0)
            exec_module_or_exit(interpreter_of(NULL), words, path);
        _exit(127);
    }
    *ret_pid = pid;
    return pid < 0 ? -errno : 0;
}

int python_write(const char *const *words, int output, struct fault *fault)
{
    char folder[PATH_MAX];
    int status = 0, r = find_modules(interpreter_of(NULL), folder, fault);
    if (r < 0)
        return r;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(output, STDOUT_FILENO) >= 0)
            exec_module_or_exit(interpreter_of(NULL), words, folder);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0)
        return fault_set(fault, errno, "cannot run %s: %s", interpreter_of(NULL), strerror(errno));
    return status == 0 ? 0 : fault_set(fault, EIO, "%s", "");
}

/* ---- estimation ---- */

/* The output of the program on one descriptor. */
struct stream {
    int fd; /* -1: closed */
    char *text;
    size_t size, capacity;
};

struct child {
    pid_t pid;
    int pidfd;
    struct stream out, err;
};

static void child_fini(struct child *child)
{
    const int fds[] = {child->pidfd, child->out.fd, child->err.fd};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(child->out.text);
    free(child->err.text);
}

/* Becomes the program, in a new process group, so that its descendants can be killed with it. */
_Noreturn static void become_program(
    const struct python_program *program, const char *folder, int out, int err)
{
    int in = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(127);
    exec_module_or_exit(interpreter_of(program->interpreter), program->words, folder);
}

/* The ends of the pipes that stay here do not block, since both are read by one poll; the pidfd
 * tells it when the program has ended. */
static int start_program(
    const struct python_program *program, const char *folder, struct child *child)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    int r = pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ? -errno : 0;
    if (r == 0 &&
        (fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(err[0], F_SETFL, O_NONBLOCK) < 0))
        r = -errno;
    child->out.fd = out[0];
    child->err.fd = err[0];
    fflush(NULL);
    if (r == 0 && (child->pid = fork()) < 0)
        r = -errno;
    if (r == 0 && child->pid == 0)
        become_program(program, folder, out[1], err[1]);
    if (out[1] >= 0)
        close(out[1]);
    if (err[1] >= 0)
        close(err[1]);
    if (r == 0 && (child->pidfd = pidfd_open(child->pid, 0)) < 0)
        r = -errno;
    return r;
}

/* Reads all present output. `keeps_end`: beyond the limit keep the end, instead of -EFBIG. */
static int read_stream(struct stream *stream, size_t limit, bool keeps_end)
{
    while (stream->fd >= 0) {
        if (ARRAY_RESERVE(stream->text, stream->capacity, stream->size + PIECE + 1) < 0)
            return -ENOMEM;
        ssize_t n = read(stream->fd, stream->text + stream->size, PIECE);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0) {
            close(stream->fd);
            stream->fd = -1;
        }
        stream->size += (size_t)n;
        if (stream->size > limit && !keeps_end)
            return -EFBIG;
        if (stream->size > limit) {
            memmove(stream->text, stream->text + stream->size - limit, limit);
            stream->size = limit;
        }
    }
    return 0;
}

/* Reads until the program has ended, even if its children hold the descriptors open. Returns 0,
 * -ETIMEDOUT, -EFBIG or another -errno. */
static int read_until_end(const struct python_program *program, struct child *child)
{
    int64_t end_us = clock_monotonic_us() + program->limit_us;
    for (;;) {
        int64_t left_us = end_us - clock_monotonic_us();
        struct pollfd ends[] = {{.fd = child->pidfd, .events = POLLIN},
            {.fd = child->out.fd, .events = POLLIN}, {.fd = child->err.fd, .events = POLLIN}};
        if (left_us <= 0)
            return -ETIMEDOUT;
        if (poll(ends, 3, (int)(left_us / MS_US < INT_MAX ? left_us / MS_US + 1 : INT_MAX)) < 0 &&
            errno != EINTR)
            return -errno;
        int r = read_stream(&child->out, program->limit_bytes, false);
        if (r == 0)
            r = read_stream(&child->err, COMPLAINT_MOST, true);
        if (r < 0 || ends[0].revents)
            return r;
    }
}

static int end_program(struct child *child)
{
    int status = 0;
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Prints the program's messages except the last line, which it returns for the fault. */
static struct span show_all_but_last(struct span messages)
{
    struct span line, rest = messages;
    while (span_next_line(&rest, &line) && rest.size > 0) {
        char *copy = strndup(line.at, line.size);
        fputs("    ", stderr);
        print_safe(stderr, copy ? copy : "");
        fputc('\n', stderr);
        free(copy);
    }
    return messages.size > 0 ? line : messages;
}

static int describe_failure(
    const struct child *child, int status, const char *interpreter, struct fault *fault)
{
    char how[64];
    struct span last = show_all_but_last(
        span_trim((struct span){child->err.text, child->err.size}));
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "exited with status %d", WEXITSTATUS(status));
    return fault_set(fault, EIO, "%s %s%s%.*s", interpreter, how, last.size ? ": " : "",
        (int)last.size, last.at);
}

static int report_outcome(const struct python_program *program, const struct child *child, int r,
    int status, struct fault *fault)
{
    const char *interpreter = interpreter_of(program->interpreter);
    if (r == -ETIMEDOUT)
        return fault_set(fault, ETIMEDOUT, "%s did not end within %.4g s", interpreter,
            (double)program->limit_us / (double)SECOND_US);
    if (r == -EFBIG)
        return fault_set(
            fault, EFBIG, "%s wrote more than %zu MiB", interpreter, program->limit_bytes >> 20);
    if (r < 0)
        return fault_set(fault, -r, "cannot run %s: %s", interpreter, strerror(-r));
    return status == 0 ? 0 : describe_failure(child, status, interpreter, fault);
}

/* What went wrong is reported in the order of what explains most: no program, no interpreter, its
 * last words, its exit code. */
int python_ask(
    const struct python_program *program, struct fault *fault, char **ret_output, size_t *ret_size)
{
    char folder[PATH_MAX];
    struct child child = {.pid = -1, .pidfd = -1, .out.fd = -1, .err.fd = -1};
    const char *interpreter = interpreter_of(program->interpreter);
    int status = 0, r = find_modules(interpreter, folder, fault);
    if (r < 0)
        return r;
    r = start_program(program, folder, &child);
    if (r == 0)
        r = read_until_end(program, &child);
    if (child.pid > 0)
        status = end_program(&child);
    r = report_outcome(program, &child, r, status, fault);
    if (r == 0) {
        child.out.text[child.out.size] = '\0';
        *ret_output = child.out.text;
        *ret_size = child.out.size;
        child.out.text = NULL;
    }
    child_fini(&child);
    return r;
}
