#include "exec/failure.h"

#include <string.h>

static const char *const names[] = {
    [FAILURE_NONE] = "none",           [FAILURE_GPU_OOM] = "gpu-oom", [FAILURE_HOST_OOM] = "host-oom",
    [FAILURE_PROGRAM] = "program",     [FAILURE_SIGNAL] = "signal",   [FAILURE_TIME_LIMIT] = "time-limit",
    [FAILURE_CANCELLED] = "cancelled", [FAILURE_LAUNCH] = "launch",   [FAILURE_LOST] = "lost",
};

const char *failure_name(enum failure_class class)
{
    return names[class];
}

bool failure_parse(const char *name, enum failure_class *ret)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = (enum failure_class)i;
            return true;
        }
    }
    return false;
}
