/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a task that runs, changed by `colloc update`: the core has the new time limit already,
 * and keeps it while the daemon runs. The shim, which keeps it also without a daemon, reads it from
 * the attempt's folder when the old one is over. CPUs and main memory are limits of the cgroup.
 *
 * Time in which a task is suspended or paused does not count. So a stopped task gets a limit
 * without end, and when it continues, the old limit plus the time that it was stopped:
 *
 *     limit 8 h    suspended after 1 h    never    resumed after 10 h    18 h after the start
 *
 * The shim of an older colloc does not read the file. It ends the task at the limit that it got, so
 * a longer one has no effect; the reply to the change says so.
 */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"

static int write_time_limit(const char *folder, int64_t limit_us)
{
    char path[STATE_PATH_SIZE + sizeof ATTEMPT_TIME_LIMIT + 1], text[32];
    snprintf(path, sizeof path, "%s/" ATTEMPT_TIME_LIMIT, folder);
    int n = snprintf(text, sizeof text, "%" PRId64, limit_us);
    return file_write_atomic(path, text, (size_t)n, 0600);
}

static int64_t shim_limit_us(const struct task *task)
{
    int64_t limit_us = task->request.time_limit_us;
    if (limit_us == 0)
        return 0;
    return task->run->yield.since_us ? TIME_NEVER / 2
                                     : limit_us + task->run->yield.attempt_stopped_us;
}

static void keep_time_limit(const struct attempts *attempts, struct live_attempt *live)
{
    const struct task *task = core_task(attempts->parts.core, live->task);
    char folder[STATE_PATH_SIZE];
    if (!task || !task_state_has_attempt(task->state) || !task->request.time_limit_us)
        return;
    int64_t limit_us = shim_limit_us(task);
    bool is_first = live->shim_limit_us == 0 && limit_us == task->request.time_limit_us;
    if (limit_us == live->shim_limit_us)
        return;
    attempts_folder(attempts, task, folder, sizeof folder);
    if (is_first || write_time_limit(folder, limit_us) == 0)
        live->shim_limit_us = limit_us;
}

static void on_live_attempt(const void *node, VISIT visit, void *context)
{
    if (visit == postorder || visit == leaf)
        keep_time_limit(context, *(struct live_attempt *const *)node);
}

void attempts_keep_time_limits(struct attempts *attempts)
{
    twalk_r(attempts->live, on_live_attempt, attempts);
}

/* Is the start deferred? It takes the limits that the task has then. */
static bool awaits_launch(const struct task *task, const struct live_attempt *live)
{
    return task->state == TASK_STARTING && !(live && (live->watch.pidfd >= 0 || live->to_adopt));
}

int attempts_apply_limits(const struct attempts *attempts, uint64_t id, struct fault *fault)
{
    const struct task *task = core_task(attempts->parts.core, id);
    struct live_attempt *live = live_attempt_find(attempts, id);
    char folder[STATE_PATH_SIZE], cgroup[CGROUP_PATH_SIZE];
    if (!task || !task_state_has_attempt(task->state))
        return 0;
    attempts_folder(attempts, task, folder, sizeof folder);
    if (awaits_launch(task, live)) {
        if (live && live->has_folder)
            attempt_clean(folder); /* its spec has the former limits: the start writes it again */
        if (live)
            live->has_folder = false;
        return 0;
    }
    int r = write_time_limit(folder, shim_limit_us(task));
    if (r == 0 && cgroups_name(attempts, folder, cgroup, sizeof cgroup)) {
        struct cgroup_limits limits = cgroups_limits_of(attempts, task);
        /* A task that requests no main memory has a limit from its start, or none. It may have
         * taken more than its present part. The limit of one that is suspended is raised; the new
         * one is set when it runs again (suspension/memory_loan.c). */
        bool is_raised = task->state == TASK_SUSPENDED || task_state_is_changing(task->state);
        limits.memory_bytes = is_raised ? 0 : task->request.host.memory_bytes;
        r = cgroup_limit_attempt(cgroup, &limits);
        if (live)
            live->has_limited_slice = false; /* the next review sets it */
    }
    if (r < 0)
        fault_set(fault, -r, "task %" PRIu64 ": its new limits are not all in force: %s", id,
            strerror(-r));
    else if (attempt_keeps_other_limit(folder, shim_limit_us(task)))
        r = fault_set(fault, EOPNOTSUPP,
            "task %" PRIu64 ": an older colloc started it, and its shim does not read a new time "
            "limit: it ends at the former one at the latest; to run longer, submit it again",
            id);
    if (r < 0)
        log_warning("%s", fault->text);
    return r;
}
