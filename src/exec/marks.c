/* SPDX-License-Identifier: Apache-2.0 */
/* One child reads all environments and writes a byte for each. When it is silent, it is killed, and
 * the next child goes on with the process after the one that did not answer. */
#include "exec/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that writes one byte for each process: the mark. */
struct reader {
    pid_t child;
    int from;
};

static _Noreturn void read_all(
    const pid_t *pids, size_t n, const char *variable, mark_reader *read_mark, int to)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < n; i++) {
        char mark = read_mark(pids[i], variable) ? MARK_PRESENT : MARK_ABSENT;
        if (write(to, &mark, 1) != 1)
            break;
    }
    _exit(0);
}

/* The child has all signals blocked: handlers of the program must not run in it. */
static int start_reader(struct reader *reader, const pid_t *pids, size_t n, const char *variable,
    mark_reader *read_mark)
{
    int ends[2];
    sigset_t all, before;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    reader->from = ends[0];
    reader->child = fork();
    if (reader->child == 0)
        read_all(pids, n, variable, read_mark, ends[1]);
    int errnum = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (reader->child > 0)
        return 0;
    close(ends[0]);
    return -errnum;
}

/* What it waits for can be killed: it ends at once. */
static void end_reader(const struct reader *reader)
{
    close(reader->from);
    kill(reader->child, SIGKILL);
    while (waitpid(reader->child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Returns how many it answered before it was silent for too long, or has ended. */
static size_t take_marks(const struct reader *reader, size_t n, enum mark *marks)
{
    size_t done = 0;
    while (done < n) {
        struct pollfd from = {.fd = reader->from, .events = POLLIN};
        int ready = poll(&from, 1, MARKS_LIMIT_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        char answers[256];
        size_t room = n - done < sizeof answers ? n - done : sizeof answers;
        ssize_t got = ready > 0 ? read(reader->from, answers, room) : 0;
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            marks[done++] = (enum mark)answers[i];
    }
    return done;
}

int marks_read(
    const pid_t *pids, size_t n, const char *variable, mark_reader *read_mark, enum mark *ret_marks)
{
    size_t next = 0;
    for (size_t i = 0; i < n; i++)
        ret_marks[i] = MARK_UNKNOWN;
    for (int stuck = 0; next < n && stuck < MARKS_STUCK_MAX; stuck++) {
        struct reader reader;
        int r = start_reader(&reader, pids + next, n - next, variable, read_mark);
        if (r < 0)
            return r;
        next += take_marks(&reader, n - next, ret_marks + next);
        end_reader(&reader);
        next++; /* the one that did not answer */
    }
    return 0;
}
