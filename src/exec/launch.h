/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a new process into the user's task.
 *
 * The child that becomes the task takes all steps that may wait for another machine: it looks up
 * the user (name service), opens the output files, changes to the task's folder and executes the
 * program (network file system). Meanwhile the shim only waits for signals, so a task that hangs in
 * one of these steps can be cancelled like any other. The child reports through a pipe that exec
 * closes.
 */
#ifndef COLLOC_EXEC_LAUNCH_H
#define COLLOC_EXEC_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"
#include "exec/output_files.h"
#include "exec/spec.h"

/* A child that becomes the task, and its reports so far. */
struct launch {
    pid_t pid;
    int report; /* the pipe's read end; -1 once the child runs the program, or has failed */
    int answer; /* 0, or -errno of the step that failed */
    struct fault fault;
    struct output_file file[OUTPUT_STREAMS]; /* that it opened; not regular before */
    pid_t writer; /* of its output (output_writer.h): another child of this process; 0: none */
};

/*
 * Starts a child that becomes the task: in a new session, as the user, in the user's folder, with
 * no descriptors but the three standard ones. It is killed when this process ends. Never waits.
 *
 * Contract: all signals are blocked in the caller, so that none reaches the child before it is the
 * task.
 *
 * folder:     of the attempt.
 * has_script: run the script in that folder, not argv.
 *
 * Returns 0, or -errno with a fault.
 */
int launch_begin(struct launch *launch, const char *folder, const struct attempt_spec *spec,
    bool has_script, struct fault *fault);

/*
 * Has the child not executed the program yet? Never waits.
 *
 * Returns false once the program runs, or when the child has failed: `answer` and `fault` then have
 * the reason.
 */
bool launch_is_under_way(struct launch *launch);

#endif
