/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks run below collocd's cgroup, and users' logins, containers, timers and other services run
 * elsewhere. So the cgroups beside the way from the root to collocd's are filtered, each with all
 * below it:
 *
 *     /sys/fs/cgroup/                   not: a filter here would be the tasks', too
 *         user.slice/                   filtered: logins, rootless containers
 *         machine.slice/                filtered
 *         colloc.slice/                 not: containers of tasks (exec/container_slice.h)
 *         system.slice/                 not
 *             cron.service/             filtered
 *             docker-4f2c....scope/     filtered
 *             collocd.service/          not
 *                 daemon/  colloc/      not: collocd itself, and the tasks
 *
 * A filter on a cgroup is a link, whose descriptor this process holds. Cgroups are known by their
 * inode number, since a service that is started again has another cgroup of the same name.
 */
#include "exec/outside_filter.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "exec/cgroup.h"

struct linked {
    ino_t inode;
    int link;
    bool is_there; /* in the review under way */
};

struct outside_filter {
    char mount[CGROUP_PATH_SIZE], own[2 * CGROUP_PATH_SIZE], home[CGROUP_PATH_SIZE];
    struct device_program program;
    struct linked *cgroups;
    size_t n, capacity;
};

static bool is_at_or_above(const char *path, const char *below)
{
    size_t length = strlen(path);
    return strncmp(path, below, length) == 0 && (below[length] == '/' || !below[length]);
}

bool outside_filter_is_own(const char *path, const char *home, const char *own)
{
    return is_at_or_above(path, home) || is_at_or_above(path, own);
}

int outside_filter_try(struct fault *fault)
{
    static const struct allowed_users none;
    struct device_program program;
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE], path[2 * CGROUP_PATH_SIZE + 32];
    if (!cgroup_find_own(mount, own))
        return fault_set(fault, ENOENT, "no cgroup v2 hierarchy is mounted");
    snprintf(path, sizeof path, "%s%s/outside-%d", mount, own, (int)getpid());
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return fault_set(fault, errno, "%.200s: %s", path, strerror(errno));
    device_program_make_outside(&none, &program);
    int link = device_program_link(path, &program);
    if (link >= 0)
        close(link);
    rmdir(path);
    return link < 0 ? fault_set(fault, -link,
                          "the kernel takes no device program of a cgroup (Linux 5.7, root): %s",
                          strerror(-link))
                    : 0;
}

static int filter_one(
    struct outside_filter *filter, const char *path, ino_t inode, struct fault *fault)
{
    for (size_t i = 0; i < filter->n; i++)
        if (filter->cgroups[i].inode == inode) {
            filter->cgroups[i].is_there = true;
            return 0;
        }
    struct linked one = {inode, device_program_link(path, &filter->program), true};
    if (one.link == -ENOENT || one.link == -ENODEV)
        return 0; /* it has just gone */
    if (one.link < 0)
        return fault_set(fault, -one.link, "%.200s: the kernel takes no device program: %s", path,
            strerror(-one.link));
    int r = ARRAY_APPEND(filter->cgroups, filter->n, filter->capacity, one);
    if (r < 0)
        close(one.link);
    return r < 0 ? fault_set(fault, -r, "out of memory") : 0;
}

/* Filters the cgroups in the folder that are not colloc's. */
static int filter_folder(struct outside_filter *filter, const char *folder, struct fault *fault)
{
    DIR *entries = opendir(folder);
    int r = entries ? 0 : fault_set(fault, errno, "%.200s: %s", folder, strerror(errno));
    for (const struct dirent *entry; r == 0 && (entry = readdir(entries));) {
        char path[CGROUP_PATH_SIZE + sizeof entry->d_name];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        bool has_slices = strcmp(folder, filter->mount) == 0 &&
                          strcmp(entry->d_name, CGROUP_SLICES) == 0;
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && !has_slices &&
            !outside_filter_is_own(path, filter->home, filter->own))
            r = filter_one(filter, path, entry->d_ino, fault);
    }
    if (entries)
        closedir(entries);
    return r;
}

static void forget_gone(struct outside_filter *filter)
{
    size_t kept = 0;
    for (size_t i = 0; i < filter->n; i++)
        if (filter->cgroups[i].is_there)
            filter->cgroups[kept++] = filter->cgroups[i];
        else
            close(filter->cgroups[i].link);
    filter->n = kept;
}

int outside_filter_review(struct outside_filter *filter, struct fault *fault)
{
    char folder[CGROUP_PATH_SIZE];
    for (size_t i = 0; i < filter->n; i++)
        filter->cgroups[i].is_there = false;
    size_t length = strlen(filter->mount);
    int r = 0;
    while (r == 0 && filter->home[length]) {
        snprintf(folder, sizeof folder, "%.*s", (int)length, filter->home);
        r = filter_folder(filter, folder, fault);
        length += 1 + strcspn(filter->home + length + 1, "/");
    }
    if (r < 0)
        return r;
    forget_gone(filter);
    return (int)filter->n;
}

struct outside_filter *outside_filter_create(
    const char *home, const struct allowed_users *users, struct fault *fault)
{
    struct outside_filter *filter = calloc(1, sizeof *filter);
    char own[CGROUP_PATH_SIZE];
    int r = -ENOMEM;
    if (!filter)
        fault_set(fault, ENOMEM, "out of memory");
    else if (!cgroup_find_own(filter->mount, own) || !is_at_or_above(filter->mount, home))
        fault_set(fault, ENOENT, "no cgroup v2 hierarchy is mounted");
    else {
        snprintf(filter->own, sizeof filter->own, "%s%s", filter->mount, own);
        snprintf(filter->home, sizeof filter->home, "%s", home);
        device_program_make_outside(users, &filter->program);
        r = outside_filter_review(filter, fault);
    }
    if (r >= 0)
        return filter;
    outside_filter_destroy(filter);
    return NULL;
}

void outside_filter_destroy(struct outside_filter *filter)
{
    if (!filter)
        return;
    for (size_t i = 0; i < filter->n; i++)
        close(filter->cgroups[i].link);
    free(filter->cgroups);
    free(filter);
}
