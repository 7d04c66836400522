/* SPDX-License-Identifier: Apache-2.0 */
/* Why an attempt at a task failed, in one word: the core decides by it, exec finds it out, the log
 * and the API name it.
 */
#ifndef COLLOC_BASE_FAILURE_CLASS_H
#define COLLOC_BASE_FAILURE_CLASS_H

#include <stdbool.h>

enum failure_class {
    FAILURE_NONE,       /* exit code 0 is success, whatever the log says */
    FAILURE_GPU_OOM,    /* GPU memory did not suffice: the only one worth another try elsewhere */
    FAILURE_HOST_OOM,   /* the machine's memory did not suffice */
    FAILURE_PROGRAM,    /* the user's own error */
    FAILURE_SIGNAL,     /* ended by a signal that nobody here sent */
    FAILURE_TIME_LIMIT, /* ended because its time was over */
    FAILURE_CANCELLED,  /* ended because somebody asked */
    FAILURE_LAUNCH,     /* could not be started: no such folder, no such interpreter ... */
    FAILURE_GPU_FAULT,  /* the GPU stopped its work: an illegal address, say; under MPS perhaps a
                           neighbour's */
    FAILURE_MPS,        /* its MPS server went away, or would not have it */
    FAILURE_GPU_GONE,   /* the GPU or MIG instance under it is not there any more */
    FAILURE_LOST,       /* its shim was killed or the machine went down: nothing is known */
    FAILURE_CLASSES
};

/* "none", "gpu-oom", "host-oom", "program", "signal", "time-limit", "cancelled", "launch",
 * "gpu-fault", "mps", "gpu-gone", "lost"; and back. */
const char *failure_name(enum failure_class failure);
bool failure_parse(const char *name, enum failure_class *ret_failure);

#endif
