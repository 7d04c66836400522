/* How an attempt ended, in one word, with the line that proves it. */
#ifndef COLLOC_EXEC_FAILURE_H
#define COLLOC_EXEC_FAILURE_H

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
    FAILURE_LOST,       /* its shim was killed or the machine went down: nothing is known */
};

enum { EVIDENCE_MAX = 320, FRAMEWORK_MAX = 16 };

struct failure {
    enum failure_class class;
    char framework[FRAMEWORK_MAX]; /* "pytorch", "tensorflow", "jax", "cuda" ...; "" when the log does not tell */
    char evidence[EVIDENCE_MAX];   /* one line of valid UTF-8 without control characters; "" when there is none */
};

/* "none", "gpu-oom", "host-oom", "program", "signal", "time-limit", "cancelled", "launch", "lost". */
const char *failure_name(enum failure_class class);
bool failure_parse(const char *name, enum failure_class *ret);

#endif
