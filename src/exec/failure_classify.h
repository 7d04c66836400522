/* SPDX-License-Identifier: Apache-2.0 */
/* From how an attempt ended and what it wrote to one word for it: exec/failure.h. */
#ifndef COLLOC_EXEC_FAILURE_CLASSIFY_H
#define COLLOC_EXEC_FAILURE_CLASSIFY_H

#include <stdbool.h>

#include "exec/logscan.h"

/* Has the kernel killed a process of the attempt for want of memory? */
enum host_oom {
    HOST_OOM_NO,
    HOST_OOM_PERHAPS, /* a process somewhere on the machine (exec/oom_counter.h) */
    HOST_OOM_CERTAIN, /* a process of the attempt (its cgroup's memory.events) */
};

struct attempt_end {
    int exit_code;  /* -1 when a signal ended it */
    int signal;     /* 0 when it exited */
    bool cancelled; /* we ended it because somebody asked, */
    bool time_over; /* or because its time was over */
    enum host_oom host_oom;
};

/*
 * What was asked goes first, then success, then what the kernel and the logs prove. Logs are
 * finished scans; stderr's word goes before stdout's. A kill counts as the host's memory only when
 * the kernel says that it killed, and "perhaps" where it does not say which process; without proof
 * it is a signal. Codes 129..159 are a shell's way of
 * telling a signal.
 */
void failure_classify(const struct attempt_end *end, const struct logscan *out,
    const struct logscan *err, struct failure *ret_failure);

#endif
