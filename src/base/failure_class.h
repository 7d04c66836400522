/* SPDX-License-Identifier: Apache-2.0 */
/* Why an attempt of a task failed. exec classifies it, the core decides by it, the event log and
 * the API contain its name. */
#ifndef COLLOC_BASE_FAILURE_CLASS_H
#define COLLOC_BASE_FAILURE_CLASS_H

#include <stdbool.h>

enum failure_class {
    FAILURE_NONE,       /* exit code 0 is success, whatever the log says */
    FAILURE_GPU_OOM,    /* out of GPU memory: the only class worth another attempt elsewhere */
    FAILURE_HOST_OOM,   /* out of main memory */
    FAILURE_PROGRAM,    /* the user's own error */
    FAILURE_SIGNAL,     /* killed by a signal that colloc did not send */
    FAILURE_TIME_LIMIT, /* killed at its time limit */
    FAILURE_CANCELLED,  /* cancelled by a user */
    FAILURE_LAUNCH,     /* cannot be started: no such folder, no such interpreter ... */
    FAILURE_GPU_FAULT,  /* the GPU aborted its work, by an illegal address for example; under MPS
                           possibly another client's; or the GPU itself is at fault (ECC) */
    FAILURE_MPS,        /* its MPS server ended or refused it */
    FAILURE_GPU_GONE,   /* its GPU or MIG instance was removed */
    FAILURE_LOST,       /* its shim was killed or the machine crashed: the outcome is unknown */
    FAILURE_DEPENDENCY, /* it never ran: a task that it depends on has ended otherwise */
    FAILURE_REQUEUED,   /* ended by a user, to be run again */
    FAILURE_STOPPED,    /* ended by the stop rule of its array */
    FAILURE_CLASSES
};

/* "none", "gpu-oom", "host-oom", "program", "signal", "time-limit", "cancelled", "launch",
 * "gpu-fault", "mps", "gpu-gone", "lost", "dependency", "requeued", "stopped"; and back. */
const char *failure_name(enum failure_class failure);
bool failure_parse(const char *name, enum failure_class *ret_failure);

#endif
