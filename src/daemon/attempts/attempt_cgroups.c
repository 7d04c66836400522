/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroups of attempts, for the daemon: it finds them at its start, names one for each attempt,
 * and removes the processes that a killed shim has left in them. Making, entering and removing them
 * is the shim's work (exec/cgroup.h).
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"
#include "exec/cgroup.h"
#include "exec/container_slice.h"
#include "exec/device_filter.h"

/* Chosen: the loop does not wait longer for the end of killed processes; the next start removes the
 * rest. */
#define REMOVE_LIMIT_US (100 * MS_US)

void attempts_limit_all(const struct attempts *attempts)
{
    const struct cgroup_limits all = {
        .memory_bytes = attempts->parts.config->core.host.memory_bytes};
    int r = attempts->cgroup_home[0] ? cgroup_limit(attempts->cgroup_home, &all) : 0;
    if (r < 0)
        log_warning("%s: the main memory of all tasks together cannot be limited: %s",
            attempts->cgroup_home, strerror(-r));
}

void cgroups_open(struct attempts *attempts)
{
    struct fault fault = {0};
    struct cgroup_controllers enabled;
    if (cgroup_open_home(attempts->cgroup_home, &enabled, &fault) < 0) {
        attempts->cgroup_home[0] = '\0';
        log_info(
            "no cgroup per task (%s): processes of a task are found by descent and environment; "
            "--cpus and --host-memory are counted, not enforced",
            fault.text);
        return;
    }
    if (!enabled.cpu || !enabled.memory || !enabled.pids)
        log_info("cgroups of tasks in %s lack controllers: not enforced:%s%s%s",
            attempts->cgroup_home, enabled.cpu ? "" : " --cpus",
            enabled.memory ? "" : " --host-memory", enabled.pids ? "" : " processes-per-task");
    if (!enabled.memory)
        log_info("a kill for want of host memory is judged by the machine's counter");
    attempts->enforced = enabled;
    if (!cgroup_find_name(attempts->cgroup_home, attempts->cgroup_name))
        attempts->cgroup_name[0] = '\0';
    attempts_limit_all(attempts);
}

struct cgroup_controllers attempts_enforced(const struct attempts *attempts)
{
    return attempts->enforced;
}

void cgroups_try_filter(struct attempts *attempts)
{
    struct fault fault = {0};
    if (!attempts->parts.config->gpu_filter)
        return;
    int r = attempts->cgroup_home[0] ? device_filter_try(attempts->cgroup_home, &fault)
                                     : fault_set(&fault, ENOENT, "tasks have no cgroups here");
    attempts->can_filter = r == 0;
    if (r < 0)
        log_warning("gpu-filter: tasks can open GPUs that they were not given: %s", fault.text);
}

/* The main memory limit of a task that requests none: its GPUs' part of all. */
static int64_t share_of_memory(const struct attempts *attempts, const struct task *task)
{
    const struct cluster_view *view = core_view(attempts->parts.core);
    int places = 0;
    for (int i = 0; i < view->n_gpus; i++)
        places += view->gpus[i].id.is_place;
    bool is_wanted = attempts->parts.config->host_memory_share && places > task->request.gpus &&
                     task->request.gpus > 0;
    int64_t all = attempts->parts.config->core.host.memory_bytes;
    return is_wanted && places > 0 ? all / places * task->request.gpus : 0;
}

/* Chosen: the kernel's weight of a cgroup for each GPU, up to its largest; that of one without. */
static int64_t cpu_weight(const struct task *task)
{
    if (task->request.gpus == 0)
        return 100;
    return task->request.gpus < 100 ? 100 * task->request.gpus : 10000;
}

struct cgroup_limits cgroups_limits_of(const struct attempts *attempts, const struct task *task)
{
    int64_t bytes = task->request.host.memory_bytes;
    return (struct cgroup_limits){.cpus = task->request.host.cpus,
        .cpu_weight = cpu_weight(task),
        .memory_bytes = bytes ? bytes : share_of_memory(attempts, task),
        .processes = attempts->parts.config->processes_per_task};
}

bool cgroups_name(const struct attempts *attempts, const char *folder, char *path, size_t size)
{
    return attempts->cgroup_home[0] && cgroup_of_attempt(attempts->cgroup_home, folder, path, size);
}

int cgroups_sweep(const struct attempts *attempts, const char *folder)
{
    char path[CGROUP_PATH_SIZE], slice[CGROUP_PATH_SIZE];
    if (!cgroups_name(attempts, folder, path, sizeof path))
        return 0;
    int n = cgroup_kill(path);
    cgroup_remove(path, REMOVE_LIMIT_US);
    int in_slice = container_slice_find(path, slice) ? container_slice_end(slice) : 0;
    return (n > 0 ? n : 0) + (in_slice > 0 ? in_slice : 0);
}

bool cgroups_attempt_runs(const struct attempts *attempts, uint64_t id, int attempt)
{
    const struct task *task = core_task(attempts->parts.core, id);
    return task && task_state_has_attempt(task->state) && task->attempts == attempt;
}

void cgroups_sweep_left(struct attempts *attempts)
{
    DIR *home = attempts->cgroup_home[0] ? opendir(attempts->cgroup_home) : NULL;
    for (const struct dirent *entry; home && (entry = readdir(home));) {
        char path[CGROUP_PATH_SIZE + sizeof entry->d_name];
        uint64_t task;
        int attempt;
        if (!cgroup_parse_name(entry->d_name, attempts->parts.config->state_dir, &task, &attempt) ||
            cgroups_attempt_runs(attempts, task, attempt))
            continue;
        snprintf(path, sizeof path, "%s/%s", attempts->cgroup_home, entry->d_name);
        int n = cgroup_kill(path);
        if (n > 0)
            log_warning("task %llu, attempt %d: the event log has no such run that goes on: %d of "
                        "its processes were killed",
                (unsigned long long)task, attempt, n);
        cgroup_remove(path, REMOVE_LIMIT_US);
    }
    if (home)
        closedir(home);
}

const char *attempts_cgroup_home(const struct attempts *attempts)
{
    return attempts->cgroup_name[0] ? attempts->cgroup_name : NULL;
}

bool attempts_find_cgroup(const struct attempts *attempts, uint64_t id, char *path, size_t size)
{
    char folder[STATE_PATH_SIZE];
    const struct task *task = core_task(attempts->parts.core, id);
    if (!task)
        return false;
    attempts_folder(attempts, task, folder, sizeof folder);
    return cgroups_name(attempts, folder, path, size);
}
