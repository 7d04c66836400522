/* Turning a fresh process into the user's task. */
#ifndef COLLOC_EXEC_LAUNCH_H
#define COLLOC_EXEC_LAUNCH_H

#include <sys/types.h>

#include "base/fault.h"
#include "exec/identity.h"
#include "exec/output.h"
#include "exec/spec.h"

/*
 * Starts the task in a session of its own, as the user, in the user's folder, with nothing of ours
 * but its three standard descriptors; it dies with this process. Returns when the user's program
 * runs (0), or could not be made to
 * (-errno, with the step that failed in the fault; nothing is left then). `script` is the kept
 * script's path, or NULL.
 */
int launch(const struct attempt_spec *spec, const char *script, const struct identity *identity,
    const struct output *output, struct fault *fault, pid_t *ret_pid);

#endif
