/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim file: its POSIX lock shows that the shim is running; its name, which can be taken only
 * once, keeps other shims from starting. claim.h has an example.
 *
 * A claim is a regular file, a fence is a symbolic link: both are known by what they are, not by
 * what is in them. So only the name has to be on the disk before the task runs, which takes one
 * flush of the disk. If the contents told them apart, they would have to be there as well. A claim
 * that a power cut has emptied is still a claim. (Versions up to 0.2 made an empty file as a fence.
 * Should one of them have been killed right after that, this version calls the attempt lost: never
 * the other way round.)
 */
#include "exec/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#define RESERVED_BYTES 4096 /* a block of the usual file systems; the claim holds a process id */
#define FENCE          "never-started" /* where the link points: for people who list the folder */

int claim_reserve(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" CLAIM_RESERVED_NAME, folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, RESERVED_BYTES) < 0 ? -errno : 0;
    close(fd);
    return r == -EOPNOTSUPP ? 0 : r;
}

/* Opens a file, locks it and writes this process's id into it. Returns the descriptor; -EAGAIN or
 * -EACCES: another shim has the lock; or another -errno. */
static int open_locked(const char *path, int flags)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int r = fcntl(fd, F_SETLK, &lock) < 0 ? -errno : file_write_fd(fd, text, (size_t)n);
    if (r < 0)
        close(fd);
    return r < 0 ? r : fd;
}

/* Renames the file unless the new name is taken. Where the file system cannot do that (NFS), a
 * second name is made by link(2), which may need an inode. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (link(from, to) < 0)
        return -errno;
    unlink(from);
    return 0;
}

/*
 * There is no reserved file if the claim is taken already, or if an earlier version of colloc made
 * the attempt: then a new file gets the name, if that is free.
 *
 * The folder is synced, but not those above it, which may be new as well: ext4, XFS and btrfs write
 * the name of a new folder before or together with what is synced in it, and each fsync costs a
 * flush of the disk.
 */
int claim_take(const char *folder)
{
    char path[PATH_MAX], from[PATH_MAX];
    snprintf(path, sizeof path, "%s/" CLAIM_NAME, folder);
    snprintf(from, sizeof from, "%s/" CLAIM_RESERVED_NAME, folder);
    int fd = open_locked(from, 0);
    bool is_own = fd == -ENOENT;
    if (is_own) {
        snprintf(from, sizeof from, "%s/" CLAIM_NAME ".%d", folder, (int)getpid());
        unlink(from);
        fd = open_locked(from, O_CREAT | O_EXCL);
    }
    int r = fd == -EAGAIN || fd == -EACCES ? 1 : fd < 0 ? fd : rename_new(from, path);
    if (is_own)
        unlink(from);
    if (fd >= 0 && r == 0 && (r = file_sync_folder_of(path)) < 0)
        unlink(path); /* nothing has run: the attempt counts as never started */
    if (fd >= 0 && r != 0)
        close(fd);
    return r == -EEXIST || r == -ENOENT ? 1 : r; /* the descriptor stays open on purpose: closing it
                                                    would drop the lock */
}

/* Returns the process that holds the lock; 0: none does; or -errno. */
static pid_t lock_holder(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_GETLK, &lock) < 0)
        return -errno;
    return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

/* If the holder of the lock is the same after pidfd_open, the pid was not reused meanwhile. */
static int open_holder(int fd, pid_t *ret_shim, int *ret_pidfd)
{
    for (;;) {
        pid_t pid = lock_holder(fd);
        if (pid < 0)
            return pid;
        if (pid == 0)
            return CLAIM_LEFT;
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0 && errno != ESRCH)
            return -errno;
        if (pidfd >= 0 && lock_holder(fd) == pid) {
            *ret_shim = pid;
            *ret_pidfd = pidfd;
            return CLAIM_HELD;
        }
        if (pidfd >= 0)
            close(pidfd);
    }
}

int claim_probe(const char *folder, pid_t *ret_shim, int *ret_pidfd)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" CLAIM_NAME, folder);
    if (symlink(FENCE, path) == 0)
        return CLAIM_FENCED;
    if (errno != EEXIST)
        return -errno;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP ? CLAIM_FENCED : -errno;
    int r = open_holder(fd, ret_shim, ret_pidfd);
    close(fd);
    return r;
}
