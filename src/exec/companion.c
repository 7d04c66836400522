/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a companion as a grandchild: the process in between ends at once and is waited for. */
#include "exec/companion.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *companion_variable(const struct attempt_spec *spec, const char *name)
{
    size_t size = strlen(name);
    for (const char *const *variable = spec->env; variable && *variable; variable++)
        if (strncmp(*variable, name, size) == 0 && (*variable)[size] == '=')
            return *variable + size + 1;
    return NULL;
}

static _Noreturn void run_companion(
    const struct companion *companion, const struct attempt_spec *spec)
{
    clearenv();
    for (const char *const *variable = spec->env; variable && *variable; variable++)
        putenv((char *)(uintptr_t)*variable);
    for (size_t i = 0; i < COMPANION_VARIABLES && companion->variable[i]; i++)
        putenv((char *)(uintptr_t)companion->variable[i]);
    execvp(companion->argv[0], (char *const *)(uintptr_t)companion->argv);
    fprintf(stderr, "colloc: %s: cannot start %s: %s\n", companion->what, companion->argv[0],
        strerror(errno));
    _exit(127);
}

void companion_start(const struct companion *companion, const struct attempt_spec *spec)
{
    pid_t between = fork();
    if (between == 0) {
        if (fork() == 0)
            run_companion(companion, spec);
        _exit(0);
    }
    if (between > 0)
        waitpid(between, NULL, 0);
    else
        fprintf(
            stderr, "colloc: %s: cannot start a process: %s\n", companion->what, strerror(errno));
}
