/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the class of a failure (exec/failure.h) from the exit status and the output of an attempt.
 */
#ifndef COLLOC_EXEC_FAILURE_CLASSIFY_H
#define COLLOC_EXEC_FAILURE_CLASSIFY_H

#include <stdbool.h>

#include "exec/logscan.h"

/* Whether the kernel killed a process for lack of memory while the attempt ran. */
enum host_oom {
    HOST_OOM_NO,
    HOST_OOM_PERHAPS, /* a process somewhere on the machine (exec/oom_counter.h) */
    HOST_OOM_CERTAIN, /* a process of the attempt (its cgroup's memory.events) */
};

struct attempt_end {
    int exit_code;  /* -1: a signal ended it */
    int signal;     /* 0: it exited */
    bool cancelled; /* the shim ended it because it was cancelled */
    bool time_over; /* the shim ended it at its time limit */
    enum host_oom host_oom;
};

/*
 * Classifies the end of an attempt. A cancel and the time limit come first, then success, then what
 * the kernel and the logs prove. SIGKILL counts as lack of host memory only when the kernel reports
 * a kill, with "perhaps" where it does not report which process; without proof it is a signal. If a
 * process of the attempt was killed and the log says only that another lost its connection, that is
 * lack of host memory, too. Exit
 * codes 129 to 159 are a shell's report of a signal.
 *
 * out, err:    finished scans; standard error's cause goes before standard output's.
 * ret_failure: filled.
 */
void failure_classify(const struct attempt_end *end, const struct logscan *out,
    const struct logscan *err, struct failure *ret_failure);

#endif
