/* SPDX-License-Identifier: Apache-2.0 */
/* The child has the signal mask and SIGCHLD as they were; here they are blocked, and waited for. */
#include "cli/command_child.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"

/* Those that end or warn a program. */
static void set_signals(sigset_t *ret_set)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};
    sigemptyset(ret_set);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        sigaddset(ret_set, numbers[i]);
}

/* Did one process send it to this one, and not the shim to all of the task? */
static bool is_for_command(const siginfo_t *info)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", info->si_pid);
    if (info->si_code != SI_USER && info->si_code != SI_QUEUE && info->si_code != SI_TKILL)
        return false;
    return file_read_start(path, name, sizeof name) <= 0 || strncmp(name, "colloc-shim", 11) != 0;
}

/* The signals are blocked. Returns the status of waitpid. */
static int wait_child(pid_t child, const sigset_t *signals)
{
    siginfo_t info;
    int status = 0;
    for (;;) {
        int number = sigwaitinfo(signals, &info);
        if (number > 0 && number != SIGCHLD && is_for_command(&info))
            kill(child, number);
        if (number == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
            return status;
    }
}

int command_child_run(
    struct command_child *child, int (*run)(const void *context), const void *context)
{
    sigset_t signals;
    struct sigaction children;
    set_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &child->before);
    sigaction(SIGCHLD, NULL, &children);
    signal(SIGCHLD, SIG_DFL); /* ignored, there would be no status */
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigaction(SIGCHLD, &children, NULL);
        sigprocmask(SIG_SETMASK, &child->before, NULL);
        int code = getppid() == parent ? run(context) : 128 + SIGTERM;
        fflush(NULL);
        _exit(code);
    }
    if (pid < 0) {
        int r = -errno;
        sigprocmask(SIG_SETMASK, &child->before, NULL);
        return r;
    }
    child->status = wait_child(pid, &signals);
    return 0;
}

int command_child_end(const struct command_child *child)
{
    if (WIFSIGNALED(child->status)) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(WTERMSIG(child->status), SIG_DFL);
        kill(getpid(), WTERMSIG(child->status));
    }
    sigprocmask(SIG_SETMASK, &child->before, NULL);
    return command_child_exit_code(child->status);
}

int command_child_exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
