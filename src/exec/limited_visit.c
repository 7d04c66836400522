/* SPDX-License-Identifier: Apache-2.0 */
/* The child writes one byte for each process that it has visited: the answer. */
#include "exec/limited_visit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_MS 100 /* chosen: what hangs in a file system may not end, and is left to others */

struct visitor {
    pid_t pid;
    int answers;
};

/* A child that the kernel keeps must not keep the locks and sockets of the program. */
static void close_all_but(int output)
{
    close_range(STDERR_FILENO + 1, (unsigned)output - 1, 0);
    close_range((unsigned)output + 1, ~0U, 0);
}

_Noreturn static void make_visits(
    const struct limited_visit *visit, size_t first, int output, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    close_all_but(output);
    for (size_t i = first; i < visit->n; i++) {
        char answer = visit->visit(visit->pids[i], visit->context);
        if (write(output, &answer, 1) != 1)
            break;
    }
    _exit(0);
}

/*
 * The child has all signals blocked: handlers of the program must not run in it. fork() would run
 * those of libraries: libuv's closes descriptors that a helper process has closed before, and whose
 * numbers are those of the pipe now. Returns 0 or -errno.
 */
static int begin_child(const struct limited_visit *visit, size_t first, struct visitor *ret_visitor)
{
    int ends[2];
    sigset_t all, before;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t self = getpid(), child = _Fork();
    if (child == 0)
        make_visits(visit, first, ends[1], self);
    int errnum = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return -errnum;
    }
    *ret_visitor = (struct visitor){.pid = child, .answers = ends[0]};
    return 0;
}

static void end_child(const struct visitor *visitor)
{
    kill(visitor->pid, SIGKILL);
    close(visitor->answers);
    for (int ms = 0; ms < REAP_MS && waitpid(visitor->pid, NULL, WNOHANG) == 0; ms++)
        poll(NULL, 0, 1);
}

/* Reads up to `most` answers, until none comes in time. Returns how many. */
static size_t read_answers(
    int answers, size_t most, int limit_ms, enum visit_answer *ret_answers, int *n_yes)
{
    size_t n = 0;
    for (struct pollfd poll_fd = {.fd = answers, .events = POLLIN}; n < most;) {
        char answer;
        int ready = poll(&poll_fd, 1, limit_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || read(answers, &answer, 1) != 1)
            break;
        if (ret_answers)
            ret_answers[n] = answer ? VISIT_YES : VISIT_NO;
        *n_yes += answer;
        n++;
    }
    return n;
}

int limited_visit_run(const struct limited_visit *visit, enum visit_answer *ret_answers)
{
    int n_yes = 0;
    size_t n_unknown = 0;
    for (size_t i = 0; ret_answers && i < visit->n; i++)
        ret_answers[i] = VISIT_UNKNOWN;
    for (size_t done = 0; done < visit->n; done++) { /* each time: one process is skipped */
        struct visitor visitor;
        int r = begin_child(visit, done, &visitor);
        if (r < 0)
            return r;
        done += read_answers(visitor.answers, visit->n - done, visit->limit_ms,
            ret_answers ? ret_answers + done : NULL, &n_yes);
        end_child(&visitor);
        if (done < visit->n && !visit->goes_on(visit->context, ++n_unknown))
            break;
    }
    return n_yes;
}
