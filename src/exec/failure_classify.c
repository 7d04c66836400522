/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ladder of conditions: the first that holds names the failure. Example: a task with exit code
 * 137 has received SIGKILL below a shell. If its cgroup counts an OOM kill, it is
 * FAILURE_HOST_OOM; otherwise it is FAILURE_SIGNAL.
 */
#include "exec/failure_classify.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "exec/log_line.h"
#include "exec/pattern.h"

/* Returns the signal that ended it, directly or as reported by a shell. */
static int end_signal(const struct attempt_end *end)
{
    if (end->signal)
        return end->signal;
    return end->exit_code > 128 && end->exit_code < 160 ? end->exit_code - 128 : 0;
}

/* Signals that another process sends, unlike those that a fault in the program raises. */
static bool is_sent(int signal)
{
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
           signal == SIGQUIT;
}

static void set_failure(
    struct failure *failure, enum failure_class class, const char *framework, const char *evidence)
{
    failure->class = class;
    snprintf(failure->framework, sizeof failure->framework, "%s", framework ? framework : "");
    snprintf(failure->evidence, sizeof failure->evidence, "%s", evidence);
}

static void set_found(
    struct failure *failure, enum failure_class class, const struct log_match *match)
{
    set_failure(failure, class, match->framework, match->evidence);
}

static void set_signal(struct failure *failure, int signal)
{
    char text[64];
    snprintf(text, sizeof text, "ended by signal %d (%s)", signal, strsignal(signal));
    set_failure(failure, FAILURE_SIGNAL, "", text);
}

static void set_host_oom(struct failure *failure, enum host_oom oom, const struct log_match *cause)
{
    const char *line = cause->kind == LOG_CAUSE_KILLED ? cause->evidence : "";
    char text[EVIDENCE_MAX + 160], evidence[EVIDENCE_MAX];
    if (oom == HOST_OOM_CERTAIN)
        snprintf(text, sizeof text, "%s",
            *line ? line : "killed by the kernel for lack of host memory (the cgroup's oom_kill)");
    else
        snprintf(text, sizeof text,
            "killed, perhaps for lack of host memory: the kernel killed a process of this machine for "
            "that reason meanwhile (oom_kill)%s%s",
            *line ? ": " : "", line);
    log_line_clean(span_of(text), evidence);
    set_failure(failure, FAILURE_HOST_OOM, *line ? cause->framework : "", evidence);
}

static const struct log_match *first_match(
    const struct log_match *first, const struct log_match *second)
{
    return first->kind != LOG_CAUSE_NONE ? first : second;
}

static void set_unproven(
    struct failure *failure, const struct logscan *out, const struct logscan *err)
{
    const struct log_match *consequence = first_match(&err->consequence, &out->consequence);
    if (consequence->kind != LOG_CAUSE_NONE)
        set_found(failure, FAILURE_PROGRAM, consequence);
    else
        set_failure(
            failure, FAILURE_PROGRAM, "", err->last_line[0] ? err->last_line : out->last_line);
}

/* Only the kernel says that it killed a process of the attempt, and the log only that another lost
 * its connection to it: so it is often when a data loader's worker is killed
 * (findings/killed-data-loader.sh). */
static bool lost_a_killed_process(
    const struct attempt_end *end, const struct logscan *out, const struct logscan *err)
{
    bool has_cause = first_match(&err->cause, &out->cause)->kind != LOG_CAUSE_NONE;
    bool has_lost = first_match(&err->consequence, &out->consequence)->kind != LOG_CAUSE_NONE;
    return end->host_oom == HOST_OOM_CERTAIN && !has_cause && has_lost;
}

void failure_classify(const struct attempt_end *end, const struct logscan *out,
    const struct logscan *err, struct failure *ret_failure)
{
    const struct log_match *cause = first_match(&err->cause, &out->cause);
    int signal = end_signal(end);
    bool killed = signal == SIGKILL || cause->kind == LOG_CAUSE_KILLED ||
                  lost_a_killed_process(end, out, err);

    if (end->time_over)
        set_failure(ret_failure, FAILURE_TIME_LIMIT, "", "");
    else if (end->cancelled)
        set_failure(ret_failure, FAILURE_CANCELLED, "", "");
    else if (end->exit_code == 0)
        set_failure(ret_failure, FAILURE_NONE, "", "");
    else if (killed && end->host_oom != HOST_OOM_NO)
        set_host_oom(ret_failure, end->host_oom, cause);
    else if (is_sent(signal))
        set_signal(ret_failure, signal);
    else if (cause->kind == LOG_CAUSE_GPU_OOM || cause->kind == LOG_CAUSE_ALLOC_FAILED)
        set_found(ret_failure, FAILURE_GPU_OOM, cause);
    else if (cause->kind == LOG_CAUSE_HOST_OOM)
        set_found(ret_failure, FAILURE_HOST_OOM, cause);
    else if (cause->kind == LOG_CAUSE_KILLED)
        set_found(ret_failure, FAILURE_SIGNAL, cause);
    else if (cause->kind == LOG_CAUSE_GPU_FAULT || cause->kind == LOG_CAUSE_HARDWARE)
        set_found(ret_failure, FAILURE_GPU_FAULT, cause);
    else if (cause->kind == LOG_CAUSE_MPS)
        set_found(ret_failure, FAILURE_MPS, cause);
    else if (cause->kind == LOG_CAUSE_PROGRAM || cause->kind == LOG_CAUSE_ASSERT)
        set_found(ret_failure, FAILURE_PROGRAM, cause);
    else if (signal)
        set_signal(ret_failure, signal);
    else
        set_unproven(ret_failure, out, err);
}
