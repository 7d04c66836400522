/* SPDX-License-Identifier: Apache-2.0 */
/* The child writes one byte for each process that it has visited: the answer. */
#include "daemon/node/limited_visit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void make_visits(
    const struct limited_visit *visit, size_t first, int output, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (size_t i = first; i < visit->n; i++) {
        char answer = visit->visit(visit->pids[i], visit->context);
        if (write(output, &answer, 1) != 1)
            break;
    }
    _exit(0);
}

/* Returns the child, or -errno. */
static pid_t begin_child(const struct limited_visit *visit, size_t first, int *ret_answers)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t self = getpid(), child = _Fork();
    if (child == 0)
        make_visits(visit, first, ends[1], self);
    int errnum = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return -errnum;
    }
    *ret_answers = ends[0];
    return child;
}

/* Reads up to `most` answers, until none comes in time. Returns how many. */
static size_t read_answers(int answers, size_t most, int limit_ms, int *n_true)
{
    size_t n = 0;
    for (struct pollfd poll_fd = {.fd = answers, .events = POLLIN}; n < most; n++) {
        char answer;
        if (poll(&poll_fd, 1, limit_ms) <= 0 || read(answers, &answer, 1) != 1)
            break;
        *n_true += answer;
    }
    return n;
}

int limited_visit_run(const struct limited_visit *visit)
{
    int n_true = 0;
    for (size_t done = 0; done < visit->n; done++) { /* each time: one process is skipped */
        int answers = -1;
        pid_t child = begin_child(visit, done, &answers);
        if (child < 0)
            return child;
        done += read_answers(answers, visit->n - done, visit->limit_ms, &n_true);
        kill(child, SIGKILL);
        close(answers);
        waitpid(
            child, NULL, done < visit->n ? WNOHANG : 0); /* the kernel may keep one that hangs */
        if (done < visit->n && !visit->goes_on(visit->context))
            break;
    }
    return n_true;
}
