/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracker is a process of the task: it runs as the task's user, in its cgroup and environment,
 * with the Python that its PATH has. It is no child of the task's program, which may wait for any
 * of its children: a process in between starts it and ends, so that the shim becomes its parent.
 *
 *     shim ── program                 python3 -m colloc.tracking task ID PID PLACES
 *       ╰──── tracker                 ends with the program
 */
#include "exec/tracker.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"

int tracker_find(char *folder, size_t size)
{
    static const char *const places[] = {"../../share/colloc", "../../.."};
    return beside_find(places, ARRAY_SIZE(places), "python", folder, size);
}

/* The task's environment, with the folder before its PYTHONPATH. */
static int set_environment(const char *folder, const struct attempt_spec *spec)
{
    char path[2 * PATH_MAX];
    clearenv();
    for (const char *const *variable = spec->env; variable && *variable; variable++)
        putenv((char *)(uintptr_t)*variable);
    const char *own = getenv("PYTHONPATH");
    bool has_own = own && *own;
    int n = snprintf(path, sizeof path, "%s%s%s", folder, has_own ? ":" : "", has_own ? own : "");
    return n < (int)sizeof path && setenv("PYTHONPATH", path, 1) == 0 ? 0 : -ENOMEM;
}

static _Noreturn void run_tracker(const char *folder, const struct attempt_spec *spec, pid_t task)
{
    char id[24], pid[24];
    snprintf(id, sizeof id, "%lld", (long long)spec->task_id);
    snprintf(pid, sizeof pid, "%d", (int)task);
    const char *const argv[] = {
        "python3", "-m", "colloc.tracking", "task", id, pid, spec->track, NULL};
    if (set_environment(folder, spec) == 0)
        execvp(argv[0], (char *const *)(uintptr_t)argv);
    fprintf(
        stderr, "colloc: tracking %s: cannot start python3: %s\n", spec->track, strerror(errno));
    _exit(127);
}

void tracker_start(const char *folder, const struct attempt_spec *spec)
{
    const pid_t task = getpid();
    pid_t between = fork();
    if (between == 0) {
        if (fork() == 0)
            run_tracker(folder, spec, task);
        _exit(0);
    }
    if (between > 0)
        waitpid(between, NULL, 0);
    else
        fprintf(stderr, "colloc: tracking %s: cannot start a process: %s\n", spec->track,
            strerror(errno));
}
