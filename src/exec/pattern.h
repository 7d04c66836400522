/* SPDX-License-Identifier: Apache-2.0 */
/* What frameworks print when they fail: one table, in pattern.c. */
#ifndef COLLOC_EXEC_PATTERN_H
#define COLLOC_EXEC_PATTERN_H

#include <stdbool.h>

enum log_cause {
    LOG_CAUSE_NONE, /* looks like a failure and is none: the first row that matches a line decides */
    LOG_CAUSE_SHORTAGE, /* GPU memory was short; the program may well do with less */
    LOG_CAUSE_LIBRARY, /* a library could not set itself up: after a shortage, because of it; else for
                      any reason */
    LOG_CAUSE_GPU_OOM,
    LOG_CAUSE_HOST_OOM,
    LOG_CAUSE_GPU_FAULT, /* the GPU stopped the work of the process, which perhaps a neighbour's fault
                       did */
    LOG_CAUSE_MPS,       /* the MPS server went away, or would not have it */
    LOG_CAUSE_PROGRAM,
    LOG_CAUSE_KILLED,      /* a part of it was killed; why is known from the kernel only */
    LOG_CAUSE_CONSEQUENCE, /* another process's failure, passed on: launchers, peers that lost their
                         partner */
};

struct pattern {
    enum log_cause kind;
    const char *framework;
    bool thrown_only;     /* proves something only as an exception that ended a traceback, not in
                             passing */
    const char *parts[3]; /* in lower case; all must be in the line, each where a word starts */
};

/* The first row that matches `line`, which must be in lower case. `thrown`: it is a traceback's
 * last line. */
const struct pattern *pattern_find(const char *line, bool thrown);

#endif
