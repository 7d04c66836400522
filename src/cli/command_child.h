/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that runs as a child, as if it ran in the place of this process, which has something to
 * do after it.
 *
 * Signals are passed on, and this process ends as the command did. Signals that colloc's shim sends
 * have gone to all processes of the task, and those of a terminal to all of its group: they are not
 * passed on. When this process ends, so does the command (PR_SET_PDEATHSIG).
 */
#ifndef COLLOC_CLI_COMMAND_CHILD_H
#define COLLOC_CLI_COMMAND_CHILD_H

#include <signal.h>

struct command_child {
    int status; /* of waitpid */
    sigset_t before;
};

/*
 * Runs a command and waits for its end. Signals stay blocked until command_child_end.
 *
 * run: is called in the child with `context`; it becomes the command, or returns an exit code
 *
 * Returns 0, or -errno: there is no child, and nothing is to end.
 */
int command_child_run(
    struct command_child *child, int (*run)(const void *context), const void *context);

/* Ends this process by the signal that ended the command. Returns the command's exit code if there
 * was none. */
int command_child_end(const struct command_child *child);

/* The exit code of a status of waitpid: 128 + N for signal N. */
int command_child_exit_code(int status);

#endif
