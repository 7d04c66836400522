/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

static int make_locked(const char *path)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int r = file_write_fd(fd, text, (size_t)n);
    if (r == 0 && fcntl(fd, F_SETLK, &lock) < 0)
        r = -errno;
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

int claim_take(const char *folder)
{
    char path[PATH_MAX], temporary[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/" CLAIM_NAME, folder);
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    int fd = make_locked(temporary);
    int r = fd;
    if (fd >= 0)
        r = link(temporary, path) == 0 ? 0 : errno == EEXIST ? 1 : -errno;
    unlink(temporary);
    if (fd >= 0 && r == 0 && (r = make_durable(fd, path)) < 0)
        unlink(path); /* nothing has run: the attempt counts as never started */
    if (fd >= 0 && r != 0)
        close(fd);
    return r; /* the descriptor stays open on purpose: closing it would drop the lock */
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
