/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program in the sandbox sees of the file system. Folders get an overlay (overlayfs) whose
 * upper layer is in memory: reads see the user's files, writes and deletions go to memory and
 * vanish with the process. In a user namespace the kernel refuses an overlay over a folder with
 * mounts below it, so such a folder is made anew in memory, and what is in it is covered one by
 * one. Where an overlay is refused all the same, and for a single file, the view is read-only.
 * /dev is taken as it is, /sys and /proc/sys read-only; /proc shows the sandbox, /dev/shm is new.
 *
 *     view        tmpfs of bounded size
 *     view/root   the new root: folders in memory with overlays of /usr, /home, /data, ...
 *     view/uN wN  upper layer and work folder of overlay N
 */
#include "sandbox/sandbox_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"

#define VIEW_OPTIONS "size=4g,mode=755" /* chosen: a checkpoint or two; then ENOSPC */

enum { MOUNTS_MOST = 4096 }; /* chosen: a container host has hundreds */

struct view {
    char folder[PATH_MAX], root[PATH_MAX];
    char *mounts[MOUNTS_MOST]; /* paths of the mounts that were there before */
    size_t n_mounts;
    int overlays;
    bool leaks;
};

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Mounts that are no files of a user. */
static bool is_system(const char *path)
{
    static const char *const folders[] = {"/proc", "/sys", "/dev"};
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (is_below(path, folders[i]))
            return true;
    return false;
}

/* Makes the path of `name` in `folder`. Returns false when it does not fit. */
static bool join_path(char path[static PATH_MAX], const char *folder, const char *name)
{
    return snprintf(path, PATH_MAX, "%s%s", folder, name) < PATH_MAX;
}

static int mount_overlay(struct view *view, const char *lower, const char *target)
{
    char upper[PATH_MAX], work[PATH_MAX], options[3 * PATH_MAX + 64], number[32];
    int n = view->overlays++;
    snprintf(number, sizeof number, "/u%d", n);
    bool fits = join_path(upper, view->folder, number);
    snprintf(number, sizeof number, "/w%d", n);
    if (!fits || !join_path(work, view->folder, number) || strpbrk(lower, ",:\\"))
        return -EINVAL;
    struct stat entry;
    if (stat(lower, &entry) < 0 || mkdir(upper, 0700) < 0 || mkdir(work, 0700) < 0 ||
        chmod(upper, entry.st_mode & 07777) < 0)
        return -errno;
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", lower, upper,
        work);
    if (mount("overlay", target, "overlay", 0, options) == 0)
        return 0;
    *strrchr(options, ',') = '\0'; /* outside of user namespaces it may be refused */
    return mount("overlay", target, "overlay", 0, options) == 0 ? 0 : -errno;
}

/* The flags that a mount in a user namespace must keep. */
static unsigned long flags_of(const char *path)
{
    static const struct {
        unsigned long of_file_system, of_mount;
    } flags[] = {{ST_NOSUID, MS_NOSUID}, {ST_NODEV, MS_NODEV}, {ST_NOEXEC, MS_NOEXEC},
        {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME}, {ST_RELATIME, MS_RELATIME}};
    unsigned long found = 0;
    struct statvfs answer;
    for (size_t i = 0; statvfs(path, &answer) == 0 && i < ARRAY_SIZE(flags); i++)
        if (answer.f_flag & flags[i].of_file_system)
            found |= flags[i].of_mount;
    return found;
}

/* Binds a file or folder in the view, read-only. If that fails, it is not in the view. */
static void bind_read_only(struct view *view, const char *source, const char *target)
{
    if (mount(source, target, NULL, MS_BIND, NULL) == 0 &&
        mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | flags_of(source), NULL) < 0)
        view->leaks = true;
}

static void copy_link(const char *path, const char *target)
{
    char link[PATH_MAX];
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n <= 0)
        return;
    link[n] = '\0';
    if (symlink(link, target) < 0)
        return; /* it is missing in the view */
}

static bool has_mounts_below(const struct view *view, const char *path)
{
    size_t n = strcmp(path, "/") == 0 ? 0 : strlen(path);
    for (size_t i = 0; i < view->n_mounts; i++)
        if (strncmp(view->mounts[i], path, n) == 0 && view->mounts[i][n] == '/' &&
            view->mounts[i][n + 1])
            return true;
    return false;
}

static void cover_path(struct view *view, const char *path);

/* A folder in memory, whose entries are covered one by one. */
static void cover_entries(struct view *view, const char *path)
{
    char below[PATH_MAX];
    DIR *folder = opendir(path);
    const char *slash = strcmp(path, "/") == 0 ? "" : path;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            snprintf(below, sizeof below, "%s/%s", slash, entry->d_name) < PATH_MAX)
            cover_path(view, below);
    if (folder)
        closedir(folder);
}

static void cover_folder(struct view *view, const char *path, const char *target, mode_t mode)
{
    if (mkdir(target, 0700) < 0 || chmod(target, mode & 07777) < 0 || is_system(path))
        return;
    if (has_mounts_below(view, path) && view->overlays < MOUNTS_MOST)
        cover_entries(view, path);
    else if (view->overlays >= MOUNTS_MOST || mount_overlay(view, path, target) < 0)
        bind_read_only(view, path, target);
}

static void cover_file(struct view *view, const char *path, const char *target)
{
    int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    close(fd);
    bind_read_only(view, path, target);
}

static void cover_path(struct view *view, const char *path)
{
    char target[PATH_MAX];
    struct stat entry;
    if (!join_path(target, view->root, path) || lstat(path, &entry) < 0)
        return;
    if (S_ISLNK(entry.st_mode))
        copy_link(path, target);
    else if (S_ISDIR(entry.st_mode))
        cover_folder(view, path, target, entry.st_mode);
    else if (S_ISREG(entry.st_mode))
        cover_file(view, path, target);
}

/* Replaces \040 and its like of proc(5) by the characters. */
static void unescape_octal(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char)strtol((char[]){from[1], from[2], from[3], '\0'}, NULL, 8);
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static void read_mounts(struct view *view)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, path[PATH_MAX];
    size_t room = 0;
    while (file && view->n_mounts < MOUNTS_MOST && getline(&line, &room, file) > 0) {
        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) != 1)
            continue;
        unescape_octal(path);
        if ((view->mounts[view->n_mounts] = strdup(path)))
            view->n_mounts++;
    }
    free(line);
    if (file)
        fclose(file);
}

static int bind_at(const struct view *view, const char *path, unsigned long flags)
{
    char target[PATH_MAX];
    return join_path(target, view->root, path) && mount(path, target, NULL, flags, NULL) == 0
               ? 0
               : -errno;
}

/* Everything below `path` of the view is read-only: root could change the kernel's settings there.
 * Before Linux 5.12 only the mount itself is, not those below it. */
static void make_read_only(const struct view *view, const char *path)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
    char target[PATH_MAX];
    if (join_path(target, view->root, path) &&
        mount_setattr(AT_FDCWD, target, AT_RECURSIVE, &attributes, sizeof attributes) < 0)
        mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | flags_of(path), NULL);
}

static void mount_system(const struct view *view)
{
    char target[PATH_MAX];
    bind_at(view, "/sys", MS_BIND | MS_REC);
    make_read_only(view, "/sys");
    bind_at(view, "/dev", MS_BIND | MS_REC);
    if (join_path(target, view->root, "/dev/shm"))
        mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, VIEW_OPTIONS);
    /* a new one shows the processes of the sandbox alone */
    if (join_path(target, view->root, "/proc") &&
        mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        bind_at(view, "/proc", MS_BIND | MS_REC);
    if (bind_at(view, "/proc/sys", MS_BIND | MS_REC) == 0)
        make_read_only(view, "/proc/sys");
}

static int make_root(struct view *view)
{
    read_mounts(view);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", view->folder, "tmpfs", MS_NOSUID | MS_NODEV, VIEW_OPTIONS) < 0 ||
        mkdir(view->root, 0755) < 0)
        return -errno;
    cover_entries(view, "/");
    mount_system(view);
    return 0;
}

static int enter_view(const char *kept, const char *cwd, struct view *view)
{
    if (!join_path(view->folder, kept, "/view") || !join_path(view->root, view->folder, "/root"))
        return -ENAMETOOLONG;
    int r = make_root(view);
    if (r == 0)
        r = bind_at(view, kept, MS_BIND);
    if (r == 0 && (chroot(view->root) < 0 || chdir(cwd) < 0))
        r = -errno;
    return r < 0 ? r : view->leaks;
}

int sandbox_view_enter(const char *kept)
{
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd))
        return -errno;
    struct view *view = calloc(1, sizeof *view);
    int r = view ? enter_view(kept, cwd, view) : -ENOMEM;
    for (size_t i = 0; view && i < view->n_mounts; i++)
        free(view->mounts[i]);
    free(view);
    return r;
}
