/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim file: its POSIX lock shows that the shim is running; its name, which can be taken only
 * once, keeps other shims from starting. claim.h has an example.
 */
#include "exec/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#define RESERVED_BYTES 4096 /* a block of the usual file systems; the claim holds a process id */

/* Does not change the size of the file: an empty claim is a fence. */
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

/*
 * Syncs the claim and its name, not the new folders above: ext4, XFS and btrfs write the name of a
 * new folder together with a file that is synced in it, and each fsync costs a flush of the disk.
 */
static int make_durable(int fd, const char *path)
{
    return fsync(fd) < 0 ? -errno : file_sync_folder_of(path);
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

/* There is no reserved file if the claim is taken already, or if an earlier version of colloc made
 * the attempt: then a new file gets the name, if that is free. */
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
    if (fd >= 0 && r == 0 && (r = make_durable(fd, path)) < 0)
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
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
        return CLAIM_FENCED;
    }
    if (errno != EEXIST)
        return -errno;
    fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat status;
    int r = fstat(fd, &status) < 0 ? -errno
            : status.st_size       ? open_holder(fd, ret_shim, ret_pidfd)
                                   : CLAIM_FENCED;
    close(fd);
    return r;
}
