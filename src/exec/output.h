/* The files a task's output goes to. */
#ifndef COLLOC_EXEC_OUTPUT_H
#define COLLOC_EXEC_OUTPUT_H

#include "base/fault.h"
#include "exec/identity.h"
#include "exec/spec.h"

struct output {
    int out;
    int err; /* may be the same descriptor as out */
};

/*
 * Opens both, close-on-exec. Files in the attempt folder are fresh and belong to the user; files
 * the user names are opened with the user's rights, so that nobody reaches through us what is not
 * theirs. 0 or -errno with a fault.
 */
int output_open(const char *folder, const struct attempt_spec *spec,
    const struct identity *identity, struct fault *fault, struct output *ret);

#endif
