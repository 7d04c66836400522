/* SPDX-License-Identifier: Apache-2.0 */
/* What frameworks print when they fail: one table, in pattern.c. */
#ifndef COLLOC_EXEC_PATTERN_H
#define COLLOC_EXEC_PATTERN_H

#include <stdbool.h>

enum log_cause {
    LOG_CAUSE_NONE, /* no failure; as a row: looks like one. The first row that matches decides */
    LOG_CAUSE_SHORTAGE, /* GPU memory was short; the program may well do with less */
    /* A library could not set itself up: after a shortage, because of it; else for any reason. */
    LOG_CAUSE_LIBRARY,
    LOG_CAUSE_GPU_OOM,
    LOG_CAUSE_HOST_OOM,
    LOG_CAUSE_GPU_FAULT, /* the GPU stopped the process, perhaps for a co-resident's fault */
    LOG_CAUSE_MPS,       /* the MPS server went away, or refused the client */
    LOG_CAUSE_PROGRAM,
    LOG_CAUSE_KILLED, /* a part of it was killed; only the kernel knows why */
    /* Another process's failure, passed on: by launchers, by peers that lost their partner. */
    LOG_CAUSE_CONSEQUENCE,
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
