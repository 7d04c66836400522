/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the command, samples until its pidfd is ready, then reaps it. Everything is in one thread:
 * a poll on the command's end and on a signalfd, with the time of the next sample as its timeout. A
 * process that runs already is watched in the same way; only that a signal ends the recording, and
 * is not passed on.
 */
#include "recorder/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/spawn.h"
#include "base/units.h"
#include "recorder/gpu_recorder.h"

/* The command while it runs, or a process of another. */
struct child {
    pid_t pid;
    bool is_foreign;
    int pidfd, signals;
    sigset_t mask_before;
};

static const int passed_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/* As a subreaper we become the parent of orphaned descendants, so that they still count as the
 * command's. */
static int watch_signals(struct child *child, struct fault *fault)
{
    sigset_t mask;
    prctl(PR_SET_CHILD_SUBREAPER, child->is_foreign ? 0 : 1);
    sigemptyset(&mask);
    for (size_t i = 0; i < ARRAY_SIZE(passed_signals); i++)
        sigaddset(&mask, passed_signals[i]);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, &child->mask_before);
    child->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return child->signals < 0 ? fault_set(fault, errno, "no signalfd: %s", strerror(errno)) : 0;
}

/* Pending signals have been forwarded to the command: they are dropped here. */
static void stop_watching(const struct child *child)
{
    struct signalfd_siginfo signal;
    while (child->signals >= 0 &&
           read(child->signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
        ;
    if (child->signals >= 0)
        close(child->signals);
    sigprocmask(SIG_SETMASK, &child->mask_before, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void restore_signal_mask(void *context)
{
    const struct child *child = context;
    sigprocmask(SIG_SETMASK, &child->mask_before, NULL);
}

static int spawn_command(struct child *child, char *const *argv, struct fault *fault)
{
    int r = spawn_program(argv, restore_signal_mask, child, &child->pid, &child->pidfd);
    return r < 0 ? fault_set(fault, -r, "%s: %s", argv[0], strerror(-r)) : 0;
}

/* Reaps orphans only: not the command, whose status is read at the end, and not programs that
 * sampling runs (dcgmi), which lead a session. */
static void reap_orphans(const struct child *child)
{
    siginfo_t ended = {0};

    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid &&
           ended.si_pid != child->pid && getsid(ended.si_pid) != ended.si_pid) {
        waitpid(ended.si_pid, NULL, 0);
        ended.si_pid = 0;
    }
}

/* Signals from the terminal (SI_KERNEL) reach the command by its process group. Returns whether one
 * ends the recording. */
static bool pass_signals(const struct child *child)
{
    struct signalfd_siginfo signal;
    bool has_end = false;
    while (read(child->signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
        if (signal.ssi_signo == SIGCHLD)
            reap_orphans(child);
        else if (child->is_foreign)
            has_end = true;
        else if (signal.ssi_code != SI_KERNEL)
            kill(child->pid, (int)signal.ssi_signo);
    return has_end;
}

/* Waits until the time. Returns true when the command, or the recording, ends before. */
static bool wait_until(const struct child *child, int64_t until_us)
{
    for (;;) {
        struct pollfd fds[] = {
            {.fd = child->pidfd, .events = POLLIN}, {.fd = child->signals, .events = POLLIN}};
        int64_t left_us = until_us - clock_monotonic_us();
        if (left_us < 0)
            left_us = 0;
        struct timespec left = {left_us / SECOND_US, left_us % SECOND_US * 1000};
        int n = ppoll(fds, 2, until_us == TIME_NEVER ? NULL : &left, NULL);
        if (n == 0)
            return false;
        if (fds[1].revents && pass_signals(child))
            return true;
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

static void sample_until_end(
    const struct child *child, struct gpu_recorder *recorder, int64_t period_us)
{
    int64_t next_us = clock_monotonic_us() + period_us;
    pid_t root = child->is_foreign ? child->pid : getpid();
    if (!recorder->set)
        period_us = 0;
    while (!wait_until(child, period_us ? next_us : TIME_NEVER)) {
        gpu_recorder_sample(recorder, root);
        int64_t now_us = clock_monotonic_us();
        for (next_us += period_us; next_us <= now_us; next_us += period_us)
            recorder->recording->late_samples++;
    }
    gpu_recorder_query_all(recorder);
    gpu_recorder_sample(recorder, root);
}

static void reap_command(const struct child *child, struct recording *recording)
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

/* Finds the running process, or starts the command. */
static int begin_command(
    const struct recorder_settings *settings, struct child *child, struct fault *fault)
{
    if (!child->is_foreign)
        return spawn_command(child, settings->argv, fault);
    child->pidfd = pidfd_open(child->pid, 0);
    return child->pidfd < 0
               ? fault_set(fault, errno, "process %d: %s", (int)child->pid, strerror(errno))
               : 0;
}

/* A program that waits for the first samples finds them in the file at once. */
static void sample_first(struct gpu_recorder *recorder)
{
    gpu_recorder_query_all(recorder);
    gpu_recorder_sample(recorder, 0);
    if (recorder->csv)
        fflush(recorder->csv);
}

static int measure_command(const struct recorder_settings *settings, struct child *child,
    struct gpu_recorder *recorder, struct fault *fault)
{
    struct recording *recording = recorder->recording;
    sample_first(recorder);
    double cpu_before_s = own_cpu_s();
    int64_t began_us = clock_monotonic_us();
    int r = begin_command(settings, child, fault);
    if (r < 0)
        return r;
    recorder->command = child->pid;
    sample_until_end(child, recorder, settings->period_us);
    recording->elapsed_s = (double)(clock_monotonic_us() - began_us) / (double)SECOND_US;
    recording->own_cpu_s = own_cpu_s() - cpu_before_s;
    if (!child->is_foreign)
        reap_command(child, recording);
    close(child->pidfd);
    return 0;
}

static int record_command(
    const struct recorder_settings *settings, struct gpu_recorder *recorder, struct fault *fault)
{
    struct child child = {
        .pid = settings->pid, .is_foreign = settings->pid != 0, .pidfd = -1, .signals = -1};
    int r = watch_signals(&child, fault);
    if (r == 0)
        r = measure_command(settings, &child, recorder, fault);
    stop_watching(&child);
    return r;
}

int recorder_run(
    const struct recorder_settings *settings, struct fault *fault, struct recording *ret_recording)
{
    struct gpu_recorder recorder = {0};
    *ret_recording = (struct recording){0};
    int r = gpu_recorder_open(&recorder, settings, ret_recording, fault);
    if (r == 0)
        r = record_command(settings, &recorder, fault);
    gpu_recorder_close(&recorder);
    if (r < 0)
        recording_fini(ret_recording);
    return r;
}

void recording_fini(struct recording *recording)
{
    free(recording->gpu);
    *recording = (struct recording){0};
}
