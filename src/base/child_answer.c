/* SPDX-License-Identifier: Apache-2.0 */
/* The answer comes through a pipe, which ends when the child and all that it has started have
 * closed it. */
#include "base/child_answer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

int child_answer_start(
    struct child_answer *ret_child, int (*run)(void *context, int fd), void *context)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        _exit(run(context, ends[1]));
    }
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -error;
    }
    *ret_child = (struct child_answer){pid, ends[0]};
    return 0;
}

/* Returns 1 when something can be read or the answer has ended; 0: not in time; -errno. */
static int wait_readable(int fd, int64_t until_us)
{
    int r;
    do {
        int64_t left_us = until_us - clock_monotonic_us();
        int left_ms = left_us > 0 ? (int)((left_us + MS_US - 1) / MS_US) : 0;
        struct pollfd polled = {fd, POLLIN, 0};
        r = poll(&polled, 1, until_us == TIME_NEVER ? -1 : left_ms);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

ssize_t child_answer_read(const struct child_answer *child, int limit_ms, void *text, size_t size)
{
    int64_t until_us = limit_ms < 0 ? TIME_NEVER : clock_monotonic_us() + limit_ms * MS_US;
    size_t used = 0, total = 0;
    for (;;) {
        char dropped[256];
        bool has_room = used < size;
        int r = wait_readable(child->fd, until_us);
        if (r <= 0)
            return r < 0 ? r : -ETIMEDOUT;
        ssize_t n = has_room ? read(child->fd, (char *)text + used, size - used)
                             : read(child->fd, dropped, sizeof dropped);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return (ssize_t)total;
        used += n > 0 && has_room ? (size_t)n : 0;
        total += n > 0 ? (size_t)n : 0;
    }
}

int child_answer_end(struct child_answer *child, enum child_end end)
{
    bool is_awaited = end == CHILD_AWAITED || end == CHILD_KILLED;
    int status = -1;
    pid_t r;
    close(child->fd);
    if (end == CHILD_KILLED || end == CHILD_GIVEN_UP)
        kill(child->pid, SIGKILL);
    do
        r = end == CHILD_LEFT ? 0 : waitpid(child->pid, &status, is_awaited ? 0 : WNOHANG);
    while (r < 0 && errno == EINTR);
    return r > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
