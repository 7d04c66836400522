/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the failure classes: stored data, never changed. */
#include "base/failure_class.h"

#include "base/text.h"

static const char *const names[FAILURE_CLASSES] = {
    [FAILURE_NONE] = "none",
    [FAILURE_GPU_OOM] = "gpu-oom",
    [FAILURE_HOST_OOM] = "host-oom",
    [FAILURE_PROGRAM] = "program",
    [FAILURE_SIGNAL] = "signal",
    [FAILURE_TIME_LIMIT] = "time-limit",
    [FAILURE_CANCELLED] = "cancelled",
    [FAILURE_LAUNCH] = "launch",
    [FAILURE_LOST] = "lost",
    [FAILURE_GPU_FAULT] = "gpu-fault",
    [FAILURE_MPS] = "mps",
    [FAILURE_GPU_GONE] = "gpu-gone",
    [FAILURE_DEPENDENCY] = "dependency",
    [FAILURE_REQUEUED] = "requeued",
    [FAILURE_STOPPED] = "stopped",
};

const char *failure_name(enum failure_class failure)
{
    return names[failure];
}

bool failure_parse(const char *name, enum failure_class *ret_failure)
{
    int place = span_place(span_of(name), names, FAILURE_CLASSES);
    if (place >= 0)
        *ret_failure = (enum failure_class)place;
    return place >= 0;
}
