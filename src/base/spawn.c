/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void become(char *const *words, int failed)
{
    execvp(words[0], words);
    int errnum = errno;
    _exit(write(failed, &errnum, sizeof errnum) == sizeof errnum ? 127 : 126);
}

/* Why exec failed; 0 when it closed the pipe. */
static int read_report(int report)
{
    int errnum = 0;
    ssize_t n;
    while ((n = read(report, &errnum, sizeof errnum)) < 0 && errno == EINTR)
        ;
    return n == (ssize_t)sizeof errnum ? errnum : 0;
}

int spawn_program(char *const *words, void (*prepare)(void *context), void *context, pid_t *ret_pid,
    int *ret_pidfd)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    fflush(NULL); /* or both would write what is still in the buffers */
    pid_t pid = fork();
    int errnum = pid < 0 ? errno : 0;
    if (pid == 0) {
        prepare(context);
        become(words, report[1]);
    }
    close(report[1]);
    if (pid > 0)
        errnum = read_report(report[0]);
    close(report[0]);
    if (!errnum && (*ret_pidfd = pidfd_open(pid, 0)) < 0) {
        errnum = errno;
        kill(pid, SIGKILL); /* what nobody watches must not run */
    }
    if (errnum && pid > 0)
        waitpid(pid, NULL, 0);
    *ret_pid = pid;
    return -errnum;
}
