/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes, limits and empties the cgroups of attempts. cgroupfs consists of small files; a write to
 * one is a command. The kernel's Documentation/admin-guide/cgroup-v2.rst describes each.
 */
#include "exec/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/units.h"

#define READ_LIMIT   MIB
#define ENTER_TRIES  5            /* a sweep may remove it between making and entering */
#define KILL_WAIT_US (10 * MS_US) /* between two tries to remove cgroups that are not empty yet */
#define DEPTH_MAX    16           /* of cgroups that a task of root has made in its own cgroup */

#define CPU_PERIOD_US   100000 /* the kernel's default; cpu.max is CPU time within it */
#define CPU_PERIOD_TEXT "100000"

static char *read_entry(const char *path, const char *name)
{
    char full[CGROUP_PATH_SIZE + 64], *data;
    size_t size;
    snprintf(full, sizeof full, "%s/%s", path, name);
    return file_read(full, READ_LIMIT, NULL, &data, &size) == 0 ? data : NULL;
}

static int write_entry(const char *path, const char *name, const char *text)
{
    char full[CGROUP_PATH_SIZE + 64];
    snprintf(full, sizeof full, "%s/%s", path, name);
    int fd = open(full, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    int r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* A missing file belongs to a controller that the cgroup does not have. */
static int set_limit(const char *path, const char *name, const char *format, int64_t value)
{
    char text[64];
    snprintf(text, sizeof text, format, (long long)value);
    int r = value > 0 ? write_entry(path, name, text) : 0;
    return r == -ENOENT ? 0 : r;
}

int cgroup_limit(const char *path, const struct cgroup_limits *limits)
{
    int r = set_limit(path, "cpu.max", "%lld " CPU_PERIOD_TEXT, limits->cpus * CPU_PERIOD_US);
    if (r == 0)
        r = set_limit(path, "cpu.weight", "%lld", limits->cpu_weight);
    if (r == 0)
        r = set_limit(path, "memory.max", "%lld", limits->memory_bytes);
    return r == 0 ? set_limit(path, "pids.max", "%lld", limits->processes) : r;
}

/* At memory.max the kernel reclaims page cache before it kills. A memory.high below it was tested:
 * a process whose anonymous memory reached it was throttled for minutes and neither continued nor
 * ended (docs/measured/people.md). It is reset for attempts of a daemon that had set it. */
int cgroup_limit_attempt(const char *path, const struct cgroup_limits *limits)
{
    int r = limits->memory_bytes > 0 ? write_entry(path, "memory.high", "max") : 0;
    if (r == 0 || r == -ENOENT)
        r = cgroup_limit(path, limits);
    return r == 0 ? set_limit(path, "memory.oom.group", "%lld", limits->memory_bytes > 0) : r;
}

/* The file has a number, or "max". */
int64_t cgroup_memory_max(const char *path)
{
    char *text = read_entry(path, "memory.max");
    int64_t bytes = 0;
    if (text)
        text[strcspn(text, "\n")] = '\0';
    if (!text || parse_int64(text, 1, INT64_MAX, &bytes) < 0)
        bytes = 0;
    free(text);
    return bytes;
}

int cgroup_enter(const char *path, const struct cgroup_limits *limits)
{
    int r = -ENOENT;
    for (int i = 0; i < ENTER_TRIES && r == -ENOENT; i++) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return -errno;
        r = limits ? cgroup_limit_attempt(path, limits) : 0;
        if (r == 0)
            r = write_entry(path, "cgroup.procs", "0");
    }
    return r;
}

/* In it and below it. */
static int count_processes(const char *path, int depth)
{
    char *list = read_entry(path, "cgroup.procs");
    DIR *entries = list && depth > 0 ? opendir(path) : NULL;
    int n = 0;
    for (const char *at = list; at && (at = strchr(at, '\n')); at++)
        n++;
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        char below[CGROUP_PATH_SIZE];
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below)
            n += count_processes(below, depth - 1);
    }
    if (entries)
        closedir(entries);
    free(list);
    return n;
}

/* Is the process in the cgroup of that name, or in one below it? */
static bool is_member(pid_t pid, const char *name)
{
    char own[CGROUP_PATH_SIZE];
    size_t size = strlen(name);
    return cgroup_find_of(pid, own) && strncmp(own, name, size) == 0 &&
           (own[size] == '\0' || own[size] == '/');
}

/* For a kernel before 5.14, which has no cgroup.kill. A process of the list may have ended by now,
 * and its pid be that of another one, which is not in the cgroup. */
static void kill_each(const char *path)
{
    char name[CGROUP_PATH_SIZE];
    char *list = read_entry(path, "cgroup.procs"), *rest = list;
    bool has_name = cgroup_find_name(path, name);
    for (const char *line; has_name && (line = strsep(&rest, "\n"));) {
        struct process_stat stat;
        pid_t pid = atoi(line);
        if (pid > 0 && process_read_stat(pid, &stat) == 0 && is_member(pid, name))
            process_signal((struct process_id){pid, stat.start_ticks}, SIGKILL);
    }
    free(list);
}

int cgroup_kill(const char *path)
{
    int n = count_processes(path, DEPTH_MAX);
    int r = write_entry(path, "cgroup.kill", "1");
    if (r == -ENOENT)
        kill_each(path);
    return r < 0 && r != -ENOENT ? r : n;
}

int cgroup_freeze(const char *path, bool is_frozen)
{
    return write_entry(path, "cgroup.freeze", is_frozen ? "1" : "0");
}

/* rmdir, the cgroups below it first. */
static int remove_tree(const char *path, int depth)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    int r = -errno;
    DIR *entries = depth > 0 ? opendir(path) : NULL;
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        char below[CGROUP_PATH_SIZE];
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below)
            remove_tree(below, depth - 1);
    }
    if (entries) {
        closedir(entries);
        r = rmdir(path) == 0 || errno == ENOENT ? 0 : -errno;
    }
    return r;
}

int cgroup_remove(const char *path, int64_t limit_us)
{
    int64_t end_us = clock_monotonic_us() + limit_us;
    int r;
    while ((r = remove_tree(path, DEPTH_MAX)) == -EBUSY && clock_monotonic_us() < end_us) {
        cgroup_kill(path);
        poll(NULL, 0, (int)(KILL_WAIT_US / MS_US));
    }
    return r;
}

struct reading cgroup_oom_kills(const char *path)
{
    char *events = read_entry(path, "memory.events");
    int64_t count = events ? cgroup_parse_value(events, "oom_kill") : -1;
    free(events);
    return count >= 0 ? reading_of((double)count) : READING_NONE;
}

bool cgroup_find_own(char *ret_mount, char *ret_own)
{
    char *mounts = read_entry("/proc/self", "mountinfo"),
         *text = read_entry("/proc/self", "cgroup");
    bool found = mounts && text && cgroup_parse_mount(mounts, ret_mount, CGROUP_PATH_SIZE) &&
                 cgroup_parse_own(text, ret_own, CGROUP_PATH_SIZE);
    free(mounts);
    free(text);
    return found;
}

bool cgroup_find_of(pid_t pid, char *ret_name)
{
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    char *text = read_entry(folder, "cgroup");
    bool found = text && cgroup_parse_own(text, ret_name, CGROUP_PATH_SIZE);
    free(text);
    return found;
}

static int find_base(char *ret_base, bool *ret_may_enable, struct fault *fault)
{
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE];
    bool found = cgroup_find_own(mount, own) &&
                 cgroup_find_base(mount, own, ret_base, CGROUP_PATH_SIZE, ret_may_enable);
    return found ? 0 : fault_set(fault, ENOENT, "no cgroup v2 hierarchy is mounted");
}

bool cgroup_find_name(const char *path, char *ret_name)
{
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE];
    if (!cgroup_find_own(mount, own))
        return false;
    size_t length = strlen(mount);
    return strncmp(path, mount, length) == 0 && path[length] == '/' &&
           snprintf(ret_name, CGROUP_PATH_SIZE, "%s", path + length) < CGROUP_PATH_SIZE;
}

/* Tests whether a process can enter: only that reveals a read-only mount, a sandbox or missing
 * rights. */
static int try_to_enter(const char *home)
{
    char path[CGROUP_PATH_SIZE + 32];
    int status = 0;
    snprintf(path, sizeof path, "%s/try-%d", home, (int)getpid());
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (child == 0)
        _exit(-cgroup_enter(path, NULL));
    waitpid(child, &status, 0);
    int r = WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
    bool can_kill = r < 0 || cgroup_kill(path) >= 0;
    cgroup_remove(path, SECOND_US);
    return can_kill ? r : -EPERM;
}

/* Is the controller in the list, "cpu memory pids\n"? */
static bool has_controller(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; at && *at; at += strspn(at, " \n")) {
        size_t length = strcspn(at, " \n");
        if (length == size && strncmp(at, name, size) == 0)
            return true;
        at += length;
    }
    return false;
}

static struct cgroup_controllers read_controllers(const char *path, const char *name)
{
    char *list = read_entry(path, name);
    const struct cgroup_controllers controllers = {
        has_controller(list, "cpu"), has_controller(list, "memory"), has_controller(list, "pids")};
    free(list);
    return controllers;
}

struct cgroup_controllers cgroup_available(const char *path)
{
    return read_controllers(path, "cgroup.controllers");
}

/* Enables the controllers for the children of the cgroup, and returns the enabled ones. One at a
 * time: a controller that the kernel lacks does not prevent the others. */
static struct cgroup_controllers cgroup_enable(const char *path)
{
    static const char *const orders[] = {"+cpu", "+memory", "+pids"};
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
        write_entry(path, "cgroup.subtree_control", orders[i]);
    return read_controllers(path, "cgroup.subtree_control");
}

int cgroup_open_home(char *ret_home, struct cgroup_controllers *ret_enabled, struct fault *fault)
{
    char base[CGROUP_PATH_SIZE];
    bool may_enable;
    int r = find_base(base, &may_enable, fault);
    if (r < 0)
        return r;
    if (snprintf(ret_home, CGROUP_PATH_SIZE, "%s/" CGROUP_HOME, base) >= CGROUP_PATH_SIZE - 64)
        return fault_set(fault, ENAMETOOLONG, "%s: the path is too long", base);
    if (mkdir(ret_home, 0755) < 0 && errno != EEXIST)
        return fault_set(fault, errno, "%s: %s", ret_home, strerror(errno));
    if (may_enable)
        cgroup_enable(base);
    *ret_enabled = cgroup_enable(ret_home);
    r = try_to_enter(ret_home);
    return r < 0 ? fault_set(fault, -r, "%s: %s", ret_home, strerror(-r)) : 0;
}
