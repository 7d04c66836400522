/* SPDX-License-Identifier: Apache-2.0 */
/* Starts programs by _Fork and execve, waits by pidfd: see program.h. */
#include "gpu/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

/* Chosen: a process that is killed ends in milliseconds, unless it is in a driver that hangs. */
#define KILL_LIMIT_US (100 * MS_US)

/*
 * Children that were killed and have not ended. Later runs reap them, and are refused while
 * there are many: each would be one more process in a driver that hangs.
 */
static struct {
    pthread_mutex_t lock;
    pid_t pids[2 * PROGRAMS_STUCK_MAX]; /* threads may exceed the limit together */
    size_t n;
} stuck = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_stuck(pid_t pid)
{
    pthread_mutex_lock(&stuck.lock);
    if (stuck.n < ARRAY_SIZE(stuck.pids))
        stuck.pids[stuck.n++] = pid;
    pthread_mutex_unlock(&stuck.lock);
}

/* Returns how many have still not ended. */
static size_t reap_stuck(void)
{
    size_t n = 0;
    pthread_mutex_lock(&stuck.lock);
    for (size_t i = 0; i < stuck.n; i++)
        if (!program_has_ended(stuck.pids[i]))
            stuck.pids[n++] = stuck.pids[i];
    stuck.n = n;
    pthread_mutex_unlock(&stuck.lock);
    return n;
}

/*
 * The child between fork and exec: only async-signal-safe calls, since the caller may have threads.
 * _Fork instead of fork keeps libraries' fork handlers out (libuv closes its pipes in one).
 */
static void exec_program(const struct program *run, int input, int output)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    if (dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2) {
        close_range(3, ~0U, 0);
        execve(run->path, run->argv, run->envp);
    }
    _exit(127);
}

static int wait_pidfd(int pidfd, int64_t limit_us)
{
    int64_t end_us = clock_monotonic_us() + limit_us;
    for (;;) {
        int64_t left_us = end_us - clock_monotonic_us();
        struct pollfd entry = {.fd = pidfd, .events = POLLIN};
        int n = poll(&entry, 1, left_us > 0 ? (int)((left_us + MS_US - 1) / MS_US) : 0);
        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

int process_wait_gone(pid_t pid, int64_t limit_us)
{
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0)
        return errno == ESRCH ? 0 : -errno;
    int r = wait_pidfd(pidfd, limit_us);
    close(pidfd);
    return r;
}

static int reap_child(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The group does not exist before the child has called setsid. */
static void kill_group(pid_t pid)
{
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
}

static int wait_child(pid_t pid, int64_t limit_us, int *ret_status)
{
    int r = process_wait_gone(pid, limit_us);
    if (r < 0)
        kill_group(pid);
    if (r < 0 && process_wait_gone(pid, KILL_LIMIT_US) < 0) {
        add_stuck(pid);
        *ret_status = 128 + SIGKILL;
    } else {
        *ret_status = reap_child(pid);
    }
    return r;
}

static int memory_file(const char *content)
{
    int fd = memfd_create("colloc-run", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = content ? file_write_fd(fd, content, strlen(content)) : 0;
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    if (r < 0)
        close(fd);
    return r < 0 ? r : fd;
}

static void read_output(int fd, char *output, size_t size)
{
    ssize_t n = pread(fd, output, size - 1, 0);
    output[n > 0 ? n : 0] = '\0';
    struct span text = span_trim(span_of(output));
    memmove(output, text.at, text.size);
    output[text.size] = '\0';
}

static int run_with_files(
    const struct program *run, int input, int output, int *ret_status, struct fault *fault)
{
    pid_t pid = _Fork();
    if (pid < 0)
        return fault_set(fault, errno, "cannot start %s: %s", run->path, strerror(errno));
    if (pid == 0)
        exec_program(run, input, output);
    int r = wait_child(pid, run->limit_us, ret_status);
    if (r == -ETIMEDOUT)
        return fault_set(fault, ETIMEDOUT, "%s did not end within %.1f s", run->path,
            (double)run->limit_us / (double)SECOND_US);
    return r;
}

int program_run(
    const struct program *run, char *output, size_t size, int *ret_status, struct fault *fault)
{
    int r;
    if (reap_stuck() >= PROGRAMS_STUCK_MAX)
        return fault_set(fault, EBUSY,
            "cannot start %s: %d programs were killed and do not end: the driver hangs", run->path,
            PROGRAMS_STUCK_MAX);
    int in = memory_file(run->input);
    int out = memory_file(NULL);
    if (in < 0 || out < 0) {
        int errnum = in < 0 ? -in : -out;
        r = fault_set(fault, errnum, "cannot start %s: %s", run->path, strerror(errnum));
    } else {
        r = run_with_files(run, in, out, ret_status, fault);
        read_output(out, output, size);
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return r;
}

bool program_find(const char *program, char *path, size_t size)
{
    const char *folders = getenv("PATH");
    if (strchr(program, '/'))
        return (size_t)snprintf(path, size, "%s", program) < size && access(path, X_OK) == 0;
    for (const char *at = folders ? folders : ""; *at;) {
        size_t length = strcspn(at, ":");
        int n = snprintf(path, size, "%.*s/%s", (int)length, at, program);
        if (length > 0 && n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

int program_start(const struct program *run, pid_t *ret_pid, int *ret_fd, struct fault *fault)
{
    int ends[2], in = memory_file(NULL);
    pid_t pid = -1;
    if (in < 0 || pipe2(ends, O_CLOEXEC) < 0) {
        int errnum = in < 0 ? -in : errno;
        if (in >= 0)
            close(in);
        return fault_set(fault, errnum, "cannot start %s: %s", run->path, strerror(errnum));
    }
    int r = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 || (pid = _Fork()) < 0 ? -errno : 0;
    if (pid == 0)
        exec_program(run, in, ends[1]);
    close(in);
    close(ends[1]);
    if (r < 0) {
        close(ends[0]);
        return fault_set(fault, -r, "cannot start %s: %s", run->path, strerror(-r));
    }
    *ret_pid = pid;
    *ret_fd = ends[0];
    return 0;
}

bool program_kill(pid_t pid)
{
    kill_group(pid);
    if (process_wait_gone(pid, KILL_LIMIT_US) < 0)
        return false;
    reap_child(pid);
    return true;
}

bool program_has_ended(pid_t pid)
{
    int status;
    return waitpid(pid, &status, WNOHANG) != 0;
}
