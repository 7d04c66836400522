/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a child program. A close-on-exec pipe reports a failed exec: the child writes errno, a
 * successful exec closes it.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void exec_program(char *const *argv, int failed)
{
    execvp(argv[0], argv);
    int errnum = errno;
    _exit(write(failed, &errnum, sizeof errnum) == sizeof errnum ? 127 : 126);
}

/* Returns the errno of a failed exec; 0: exec closed the pipe. */
static int read_report(int report)
{
    int errnum = 0;
    ssize_t n;
    while ((n = read(report, &errnum, sizeof errnum)) < 0 && errno == EINTR)
        ;
    return n == (ssize_t)sizeof errnum ? errnum : 0;
}

int spawn_program(char *const *argv, void (*prepare)(void *context), void *context, pid_t *ret_pid,
    int *ret_pidfd)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    fflush(NULL); /* otherwise both processes would write the buffered output */
    pid_t pid = fork();
    int errnum = pid < 0 ? errno : 0;
    if (pid == 0) {
        prepare(context);
        exec_program(argv, report[1]);
    }
    close(report[1]);
    if (pid > 0)
        errnum = read_report(report[0]);
    close(report[0]);
    if (!errnum && (*ret_pidfd = pidfd_open(pid, 0)) < 0) {
        errnum = errno;
        kill(pid, SIGKILL); /* without a pidfd it cannot be watched */
    }
    if (errnum && pid > 0)
        waitpid(pid, NULL, 0);
    *ret_pid = pid;
    return -errnum;
}
