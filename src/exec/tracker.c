/* SPDX-License-Identifier: Apache-2.0 */
/* The tracker is a companion (exec/companion.h) with the Python that the task's PATH has:
 * python3 -m colloc.tracking task ID PID PLACES. */
#include "exec/tracker.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "exec/companion.h"

int tracker_find(char *folder, size_t size)
{
    static const char *const places[] = {"../../share/colloc", "../../.."};
    return beside_find(places, ARRAY_SIZE(places), "python", folder, size);
}

void tracker_start(const char *folder, const struct attempt_spec *spec)
{
    char id[24], pid[24], what[128], path[2 * PATH_MAX];
    const char *own = companion_variable(spec, "PYTHONPATH");
    bool has_own = own && *own;
    int n = snprintf(
        path, sizeof path, "PYTHONPATH=%s%s%s", folder, has_own ? ":" : "", has_own ? own : "");
    snprintf(id, sizeof id, "%lld", (long long)spec->task_id);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(what, sizeof what, "tracking %s", spec->track);
    const char *const argv[] = {
        "python3", "-m", "colloc.tracking", "task", id, pid, spec->track, NULL};
    const struct companion tracker = {what, argv, {path}};
    if (n < (int)sizeof path)
        companion_start(&tracker, spec);
    else
        fprintf(stderr, "colloc: %s: its PYTHONPATH is too long\n", what);
}
