/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds who keeps a GPU's device file open. A process that was forked from one that used CUDA has
 * its descriptors, and so keeps the driver from releasing the memory of that process after its end
 * (docs/collocation.md). The driver lists no such process; what it shows is the link in its folder
 * /proc/PID/fd, and that it is still in the session of the dead process:
 *
 *     train.py    pid 100, session 100    killed; the driver goes on listing it with 11 GiB
 *     a worker    pid 117, session 100    has /dev/nvidia0 open: it holds the memory
 *     nvtop       pid 300, session 250    has it open too, for its own sake
 */
#include "exec/device_holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"

/* The pid namespace of the machine itself: PROC_PID_INIT_INO of include/linux/proc_ns.h. */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

/* Chosen: descriptors that are read of a process; CUDA opens the device among its first. */
#define DESCRIPTORS_MAX 4096

/* Tests with emulated GPUs name another folder than /dev. */
static void write_device_path(int minor, char *path, size_t size)
{
    const char *folder = getenv("COLLOC_DEVICE_FOLDER");
    snprintf(path, size, "%s/nvidia%d", folder ? folder : "/dev", minor);
}

static bool is_link_to(int folder, const char *name, const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(folder, name, target, sizeof target - 1);
    if (n < 0)
        return false;
    target[n] = '\0';
    return strcmp(target, path) == 0;
}

static bool has_open(pid_t pid, const char *path)
{
    char name[32];
    bool is_found = false;
    snprintf(name, sizeof name, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(name);
    if (!folder)
        return false;
    int n_read = 0;
    for (const struct dirent *entry;
         !is_found && n_read < DESCRIPTORS_MAX && (entry = readdir(folder)); n_read++)
        is_found = *entry->d_name != '.' && is_link_to(dirfd(folder), entry->d_name, path);
    closedir(folder);
    return is_found;
}

struct walk {
    const struct device_search *search;
    char path[PATH_MAX];
    pid_t found;
};

static bool is_excluded(const struct device_search *search, pid_t pid)
{
    for (size_t i = 0; i < search->n_others; i++)
        if (search->others[i] == pid)
            return true;
    return pid == getpid();
}

static int visit_process(pid_t pid, void *context)
{
    struct walk *walk = context;
    const struct device_search *search = walk->search;
    struct process_stat stat;
    if (is_excluded(search, pid) ||
        (search->session &&
            (process_read_stat(pid, &stat) < 0 || stat.session != search->session)) ||
        !has_open(pid, walk->path))
        return 0;
    walk->found = pid;
    return 1;
}

pid_t device_holder_find(const struct device_search *search)
{
    struct walk walk = {.search = search};
    write_device_path(search->minor, walk.path, sizeof walk.path);
    return process_walk(visit_process, &walk) < 0 ? 0 : walk.found;
}

bool device_holder_sees_all_pids(void)
{
    return is_link_to(AT_FDCWD, "/proc/self/ns/pid", INITIAL_PID_NAMESPACE);
}
