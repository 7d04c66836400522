/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim file: a POSIX lock says that its shim lives, a name that cannot be taken twice says
 * that no other shim can. claim.h has an example.
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

/* Without changing the size: an empty claim is a fence. */
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

/* Opens a file with our lock on it and our process id in it. Returns the descriptor or -errno;
 * -EAGAIN or -EACCES: another shim has the lock. */
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
 * The claim and its name. Folders above that are as new are not forced: ext4, XFS and btrfs write a
 * new folder's own name with what is forced in it, and each fsync costs a flush of the disk.
 */
static int make_durable(int fd, const char *path)
{
    return fsync(fd) < 0 ? -errno : file_sync_folder_of(path);
}

/* Gives the file its name unless that is taken. A name of its own, as by link(2), would need an
 * inode on some file systems; those that cannot rename so (NFS) get that. */
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

/* There is no reserved file when the claim is taken already, and in attempts that an earlier
 * version of colloc made: then a file of this shim's gets the name, if that is free. */
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

/* The process that holds the lock, 0 when none does, or -errno. */
static pid_t holder(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_GETLK, &lock) < 0)
        return -errno;
    return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

/* The pid is the holder's for as long as it holds the lock: still the same after the open means the
 * right process. */
static int open_holder(int fd, pid_t *ret_shim, int *ret_pidfd)
{
    for (;;) {
        pid_t pid = holder(fd);
        if (pid < 0)
            return pid;
        if (pid == 0)
            return CLAIM_LEFT;
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0 && errno != ESRCH)
            return -errno;
        if (pidfd >= 0 && holder(fd) == pid) {
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
