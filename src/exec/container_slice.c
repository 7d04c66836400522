/* SPDX-License-Identifier: Apache-2.0 */
/* systemctl speaks to systemd. Without an answer the cgroup is emptied and removed anyway. */
#include "exec/container_slice.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu/program.h"

#define SYSTEMCTL       "/usr/bin/systemctl" /* a shim has no PATH */
#define SYSTEMCTL_US    (3 * SECOND_US)      /* chosen: it takes 20 ms where systemd answers */
#define REMOVE_LIMIT_US SECOND_US            /* chosen: of processes that were killed */

enum { PROPERTY_SIZE = 48 };

bool container_slice_find_home(char *ret_home)
{
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE];
    return cgroup_find_own(mount, own) &&
           snprintf(ret_home, CGROUP_PATH_SIZE, "%s/" CGROUP_SLICES, mount) < CGROUP_PATH_SIZE;
}

bool container_slice_find(const char *cgroup, char *ret_path)
{
    char home[CGROUP_PATH_SIZE], name[96];
    return container_slice_find_home(home) && cgroup_slice_of(cgroup, name, sizeof name) &&
           snprintf(ret_path, CGROUP_PATH_SIZE, "%s/%s", home, name) < CGROUP_PATH_SIZE &&
           access(ret_path, F_OK) == 0;
}

/* Waits for the end of a command of systemctl; what it says of an unknown unit is of no use. */
static void run_systemctl(const char *const *words)
{
    char output[256];
    int status;
    struct fault fault;
    const struct program run = {.path = SYSTEMCTL,
        .argv = (char *const *)(uintptr_t)words,
        .envp = environ,
        .limit_us = SYSTEMCTL_US};
    if (access(SYSTEMCTL, X_OK) == 0)
        program_run(&run, output, sizeof output, &status, &fault);
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

int container_slice_limit(const char *path, const struct cgroup_limits *limits)
{
    char cpus[PROPERTY_SIZE], weight[PROPERTY_SIZE], memory[PROPERTY_SIZE], tasks[PROPERTY_SIZE];
    const char *const words[] = {SYSTEMCTL, "set-property", "--runtime", name_of(path), cpus,
        weight, memory, tasks, NULL}; /* an empty value is systemd's default */
    int64_t percent = limits->cpus * 100;
    snprintf(cpus, sizeof cpus, percent ? "CPUQuota=%" PRId64 "%%" : "CPUQuota=", percent);
    snprintf(weight, sizeof weight,
        limits->cpu_weight ? "CPUWeight=%" PRId64 : "CPUWeight=", limits->cpu_weight);
    snprintf(memory, sizeof memory,
        limits->memory_bytes ? "MemoryMax=%" PRId64 : "MemoryMax=infinity", limits->memory_bytes);
    snprintf(tasks, sizeof tasks, limits->processes ? "TasksMax=%" PRId64 : "TasksMax=infinity",
        limits->processes);
    run_systemctl(words);
    return cgroup_limit_attempt(path, limits);
}

/* Removes the files in which systemd has the limits. `systemctl revert` would do it, and reload all
 * of systemd: GPUs that NVIDIA's runtime has given to other containers would be lost to them. */
static void remove_settings(const char *name)
{
    char path[CGROUP_PATH_SIZE];
    snprintf(path, sizeof path, "/run/systemd/system.control/%s.d", name);
    DIR *entries = opendir(path);
    for (const struct dirent *entry; entries && (entry = readdir(entries));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries)
        closedir(entries);
    rmdir(path);
}

int container_slice_end(const char *path)
{
    const char *const stop[] = {SYSTEMCTL, "stop", name_of(path), NULL};
    int n = cgroup_kill(path);
    run_systemctl(stop);
    int r = cgroup_remove(path, REMOVE_LIMIT_US);
    remove_settings(name_of(path));
    return r < 0 ? r : n;
}
