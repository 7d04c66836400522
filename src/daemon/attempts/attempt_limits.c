/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a task that runs, changed by `colloc update`: the core has the new time limit already,
 * and keeps it while the daemon runs. The shim, which keeps it also without a daemon, reads it from
 * the attempt's folder when the old one is over. CPUs and main memory are limits of the cgroup.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"

static int write_time_limit(const char *folder, int64_t limit_us)
{
    char path[STATE_PATH_SIZE + sizeof ATTEMPT_TIME_LIMIT + 1], text[32];
    snprintf(path, sizeof path, "%s/" ATTEMPT_TIME_LIMIT, folder);
    int n = snprintf(text, sizeof text, "%" PRId64, limit_us);
    return file_write_atomic(path, text, (size_t)n, 0600);
}

void attempts_apply_limits(const struct attempts *attempts, uint64_t id)
{
    const struct task *task = core_task(attempts->parts.core, id);
    char folder[STATE_PATH_SIZE], cgroup[CGROUP_PATH_SIZE];
    if (!task || !task_state_has_attempt(task->state))
        return;
    attempts_folder(attempts, task, folder, sizeof folder);
    int r = write_time_limit(folder, task->request.time_limit_us);
    if (r == 0 && cgroups_name(attempts, folder, cgroup, sizeof cgroup)) {
        struct cgroup_limits limits = cgroups_limits_of(attempts, task);
        r = cgroup_limit_attempt(cgroup, &limits);
    }
    if (r < 0)
        log_warning("task %" PRIu64 ": its new limits are not all in force: %s", id, strerror(-r));
}
