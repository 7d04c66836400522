/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turning a fresh process into the user's task.
 *
 * The child that becomes the task does everything that may wait for another machine: it looks the
 * user up (a name service), opens the output files, changes to the task's folder and executes the
 * program (a network file system). The shim meanwhile only waits for signals, so that a task that
 * hangs on its way can be cancelled like any other. The child reports by a pipe that exec closes.
 */
#ifndef COLLOC_EXEC_LAUNCH_H
#define COLLOC_EXEC_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"
#include "exec/output_files.h"
#include "exec/spec.h"

/* A child on its way, and what it has reported so far. */
struct launch {
    pid_t pid;
    int report; /* the pipe's end; -1 once the child runs the program, or has given up */
    int answer; /* 0, or -errno of the step that failed */
    struct fault fault;
    struct output_file file[OUTPUT_STREAMS]; /* what it opened; none is regular before */
};

/*
 * Starts a child that becomes the task: in a session of its own, as the user, in the user's folder,
 * with nothing of ours but its three standard descriptors. It dies with this process. To be called
 * with all signals blocked: none reaches the child before it is the task.
 * folder: of the attempt. has_script: run the kept script, not argv.
 * Returns 0 or -errno with a fault; never waits.
 */
int launch_begin(struct launch *launch, const char *folder, const struct attempt_spec *spec,
    bool has_script, struct fault *fault);

/*
 * Is the child still on its way to the program? Never waits.
 * Returns false once the program runs, and when the child has ended before: `answer` and `fault`
 * then say why it gave up.
 */
bool launch_is_under_way(struct launch *launch);

#endif
