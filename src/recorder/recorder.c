/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "base/units.h"
#include "recorder/look.h"

/* The command while it runs. */
struct child {
    pid_t pid;
    int pidfd, signals;
    sigset_t mask_before;
};

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/* Orphans among its descendants become ours, so that they are still found to be the command's. */
static int watch_signals(struct child *child, struct fault *fault)
{
    sigset_t mask;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        sigaddset(&mask, passed_on[i]);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, &child->mask_before);
    child->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return child->signals < 0 ? fault_set(fault, errno, "no signalfd: %s", strerror(errno)) : 0;
}

/* What arrived was the command's. */
static void stop_watching(const struct child *child)
{
    struct signalfd_siginfo signal;

    while (child->signals >= 0 &&
           read(child->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal))
        ;
    if (child->signals >= 0)
        close(child->signals);
    sigprocmask(SIG_SETMASK, &child->mask_before, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void let_signals_through(void *context)
{
    const struct child *child = context;

    sigprocmask(SIG_SETMASK, &child->mask_before, NULL);
}

static int spawn(struct child *child, char *const *words, struct fault *fault)
{
    int r = spawn_program(words, let_signals_through, child, &child->pid, &child->pidfd);

    return r < 0 ? fault_set(fault, -r, "%s: %s", words[0], strerror(-r)) : 0;
}

/* Not the command, whose end is told at the end; nor what we started ourselves to look, which leads
 * a session. */
static void reap_orphans(const struct child *child)
{
    siginfo_t ended = {0};

    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid &&
           ended.si_pid != child->pid && getsid(ended.si_pid) != ended.si_pid) {
        waitpid(ended.si_pid, NULL, 0);
        ended.si_pid = 0;
    }
}

/* What the terminal sends goes to its whole process group anyway. */
static void take_signals(const struct child *child)
{
    struct signalfd_siginfo signal;

    while (read(child->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal))
        if (signal.ssi_signo == SIGCHLD)
            reap_orphans(child);
        else if (signal.ssi_code != SI_KERNEL)
            kill(child->pid, (int)signal.ssi_signo);
}

/* True when the command has ended by then. */
static bool wait_until(const struct child *child, int64_t until_us)
{
    for (;;) {
        struct pollfd fds[] = {
            {.fd = child->pidfd, .events = POLLIN}, {.fd = child->signals, .events = POLLIN}};
        int64_t left_us = until_us - clock_monotonic_us();
        if (left_us < 0)
            left_us = 0;
        struct timespec left = {left_us / SECOND_US, left_us % SECOND_US * 1000};
        int n = ppoll(fds, 2, until_us == INT64_MAX ? NULL : &left, NULL);
        if (n == 0)
            return false;
        if (fds[1].revents)
            take_signals(child);
        if (fds[0].revents)
            return true;
    }
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / (double)SECOND_US;
}

static double own_cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

static void watch(const struct child *child, struct looker *looker, int64_t period_us)
{
    int64_t next_us = clock_monotonic_us() + period_us;

    if (!looker->set)
        period_us = 0;
    while (!wait_until(child, period_us ? next_us : INT64_MAX)) {
        looker_look(looker, getpid());
        int64_t now_us = clock_monotonic_us();
        for (next_us += period_us; next_us <= now_us; next_us += period_us)
            looker->recording->late_looks++;
    }
    looker_ask_all(looker);
    looker_look(looker, getpid());
}

static void reap(const struct child *child, struct recording *recording)
{
    struct rusage usage = {0};
    int status = 0;

    while (wait4(child->pid, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    recording->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    recording->user_s = seconds_of(usage.ru_utime);
    recording->system_s = seconds_of(usage.ru_stime);
    recording->host_peak_bytes = usage.ru_maxrss * KIB;
}

static int measure(const struct recorder_settings *settings, struct child *child,
    struct looker *looker, struct fault *fault)
{
    struct recording *recording = looker->recording;

    looker_ask_all(looker);
    looker_look(looker, 0);
    double cpu_before_s = own_cpu_s();
    int64_t began_us = clock_monotonic_us();
    int r = spawn(child, settings->words, fault);
    if (r < 0)
        return r;
    watch(child, looker, settings->period_us);
    recording->elapsed_s = (double)(clock_monotonic_us() - began_us) / (double)SECOND_US;
    recording->own_cpu_s = own_cpu_s() - cpu_before_s;
    reap(child, recording);
    close(child->pidfd);
    return 0;
}

static int record(
    const struct recorder_settings *settings, struct looker *looker, struct fault *fault)
{
    struct child child = {.pidfd = -1, .signals = -1};
    int r = watch_signals(&child, fault);

    if (r == 0)
        r = measure(settings, &child, looker, fault);
    stop_watching(&child);
    return r;
}

int recorder_run(
    const struct recorder_settings *settings, struct fault *fault, struct recording *ret_recording)
{
    struct looker looker = {0};

    *ret_recording = (struct recording){0};
    int r = looker_open(&looker, settings, ret_recording, fault);
    if (r == 0)
        r = record(settings, &looker, fault);
    looker_close(&looker);
    if (r < 0)
        recording_fini(ret_recording);
    return r;
}

void recording_fini(struct recording *recording)
{
    free(recording->gpu);
    *recording = (struct recording){0};
}
