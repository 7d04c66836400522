/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/classify.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The signal that ended it, directly or below a shell. */
static int ending_signal(const struct ending *ending)
{
    if (ending->signal)
        return ending->signal;
    return ending->exit_code > 128 && ending->exit_code < 160 ? ending->exit_code - 128 : 0;
}

/* Signals that somebody sends, unlike those that a fault in the program raises. */
static bool is_sent(int signal)
{
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
           signal == SIGQUIT;
}

static void set(
    struct failure *failure, enum failure_class class, const char *framework, const char *evidence)
{
    failure->class = class;
    snprintf(failure->framework, sizeof failure->framework, "%s", framework ? framework : "");
    snprintf(failure->evidence, sizeof failure->evidence, "%s", evidence);
}

static void set_found(
    struct failure *failure, enum failure_class class, const struct finding *finding)
{
    set(failure, class, finding->framework, finding->evidence);
}

static void set_signal(struct failure *failure, int signal)
{
    char text[64];
    snprintf(text, sizeof text, "ended by signal %d (%s)", signal, strsignal(signal));
    set(failure, FAILURE_SIGNAL, "", text);
}

static void set_kernel(struct failure *failure, const struct finding *cause)
{
    bool told = cause->clue == CLUE_KILLED;
    set(failure, FAILURE_HOST_OOM, told ? cause->framework : "",
        told ? cause->evidence
             : "killed, and the kernel counts a process killed for want of memory (oom_kill)");
}

static const struct finding *either(const struct finding *first, const struct finding *second)
{
    return first->clue != CLUE_NOTHING ? first : second;
}

static void set_unproven(
    struct failure *failure, const struct logscan *out, const struct logscan *err)
{
    const struct finding *consequence = either(&err->consequence, &out->consequence);
    if (consequence->clue != CLUE_NOTHING)
        set_found(failure, FAILURE_PROGRAM, consequence);
    else
        set(failure, FAILURE_PROGRAM, "", err->last_line[0] ? err->last_line : out->last_line);
}

void classify(const struct ending *ending, const struct logscan *out, const struct logscan *err,
    struct failure *ret_failure)
{
    const struct finding *cause = either(&err->cause, &out->cause);
    int signal = ending_signal(ending);
    bool killed = signal == SIGKILL || cause->clue == CLUE_KILLED;

    if (ending->time_over)
        set(ret_failure, FAILURE_TIME_LIMIT, "", "");
    else if (ending->cancelled)
        set(ret_failure, FAILURE_CANCELLED, "", "");
    else if (ending->exit_code == 0)
        set(ret_failure, FAILURE_NONE, "", "");
    else if (killed && ending->kernel_killed)
        set_kernel(ret_failure, cause);
    else if (is_sent(signal))
        set_signal(ret_failure, signal);
    else if (cause->clue == CLUE_GPU_OOM)
        set_found(ret_failure, FAILURE_GPU_OOM, cause);
    else if (cause->clue == CLUE_HOST_OOM)
        set_found(ret_failure, FAILURE_HOST_OOM, cause);
    else if (cause->clue == CLUE_KILLED)
        set_found(ret_failure, FAILURE_SIGNAL, cause);
    else if (cause->clue == CLUE_GPU_FAULT)
        set_found(ret_failure, FAILURE_GPU_FAULT, cause);
    else if (cause->clue == CLUE_MPS)
        set_found(ret_failure, FAILURE_MPS, cause);
    else if (cause->clue == CLUE_PROGRAM)
        set_found(ret_failure, FAILURE_PROGRAM, cause);
    else if (signal)
        set_signal(ret_failure, signal);
    else
        set_unproven(ret_failure, out, err);
}
