/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A companion is a process of the task beside its program: it runs as the task's user, in its
 * cgroup and environment. It is no child of the program, which may wait for any of its children: a
 * process in between starts it and ends, so that the shim becomes its parent.
 *
 *     shim ── program
 *       ╰──── companion        ends with the program, whose process it is given
 */
#ifndef COLLOC_EXEC_COMPANION_H
#define COLLOC_EXEC_COMPANION_H

#include "exec/spec.h"

enum { COMPANION_VARIABLES = 2 };

struct companion {
    const char *what;                          /* for messages: "tracking mlflow" */
    const char *const *argv;                   /* searched on the task's PATH */
    const char *variable[COMPANION_VARIABLES]; /* "NAME=VALUE" beside the task's; or NULL */
};

/* Starts a companion of this process, which is about to execute the task's program. One that cannot
 * be started prints why to the task's standard error; the task runs without. */
void companion_start(const struct companion *companion, const struct attempt_spec *spec);

/* The value of a variable of the task; NULL: it has none. */
const char *companion_variable(const struct attempt_spec *spec, const char *name);

#endif
