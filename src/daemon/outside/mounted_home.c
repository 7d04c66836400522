/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes in a container of dockerd are mostly root's, and dockerd does not say who started it.
 * The home folder that is mounted in it says whose data it works on. The kernel shows mounts
 * without a question to dockerd, in proc_pid_mountinfo(5), where a line has the device, the folder
 * of that device that is mounted, and the place:
 *
 *     host       29 1 8:2 / / rw - ext4 /dev/sda2 rw          46 29 8:3 / /home rw - ext4 ...
 *     container  512 500 8:3 /ada/data /data rw - ext4 ...    with -v /home/ada/data:/data
 *
 * The folder /ada/data of device 8:3 is /home/ada/data on the host, where 8:3 is at /home. Of
 * several mounts of the device the one with the longest folder in common is taken (btrfs mounts
 * the subvolume /@home at /home).
 */
#include "daemon/outside/mounted_home.h"

#include "base/span_parts.h"

#include <stdio.h>
#include <string.h>

#define HOME "/home/"

struct mount {
    struct span device, folder, place;
};

/* Folders that no longer exist end with "//deleted". */
static bool parse_mount(struct span line, struct mount *ret_mount)
{
    span_take_until(&line, ' '); /* the mount's number */
    span_take_until(&line, ' '); /* its parent's */
    ret_mount->device = span_take_until(&line, ' ');
    ret_mount->folder = span_take_until(&line, ' ');
    ret_mount->place = span_take_until(&line, ' ');
    return span_starts(ret_mount->folder, "/") && span_starts(ret_mount->place, "/");
}

/* Is the folder `below`, or in it? "/" has all. */
static bool has_folder(struct span below, struct span folder)
{
    if (below.size == 1)
        return true;
    return folder.size >= below.size && memcmp(folder.at, below.at, below.size) == 0 &&
           (folder.size == below.size || folder.at[below.size] == '/');
}

/* Writes the folder's path on the host. Returns whether it has one. */
static bool find_path(const struct mount *mount, const char *host, char *path, size_t size)
{
    struct span text = span_of(host), line;
    struct mount other, best = {.folder = {NULL, 0}};
    while (span_next_line(&text, &line))
        if (parse_mount(line, &other) && span_equals(other.device, mount->device) &&
            has_folder(other.folder, mount->folder) && other.folder.size > best.folder.size)
            best = other;
    if (!best.folder.size)
        return false;
    struct span rest = {mount->folder.at, mount->folder.size};
    size_t common = best.folder.size == 1 ? 0 : best.folder.size;
    rest.at += common;
    rest.size -= common;
    size_t place = best.place.size == 1 ? 0 : best.place.size;
    int n = snprintf(path, size, "%.*s%.*s", (int)place, best.place.at, (int)rest.size, rest.at);
    return n > 0 && (size_t)n < size;
}

static bool read_user(const char *path, char user[HOME_USER_SIZE])
{
    if (strncmp(path, HOME, strlen(HOME)) != 0)
        return false;
    struct span name = {path + strlen(HOME), strcspn(path + strlen(HOME), "/")};
    return name.size > 0 && !memchr(name.at, '\\', name.size) &&
           span_copy(name, user, HOME_USER_SIZE);
}

bool mounted_home_find(
    const char *container, const char *host, const char *id, char ret_user[HOME_USER_SIZE])
{
    struct span text = span_of(container), line;
    struct mount mount;
    char path[4096];
    while (span_next_line(&text, &line)) {
        bool is_given = parse_mount(line, &mount) && !span_is(mount.place, "/");
        if (is_given && find_path(&mount, host, path, sizeof path) && !strstr(path, id) &&
            read_user(path, ret_user))
            return true;
    }
    return false;
}
