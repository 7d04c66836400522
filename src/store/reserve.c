/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disk space for the time when the disk is full.
 *
 * A log that cannot be written cannot record that tasks end or are cancelled. So a file of a fixed
 * size, colloc.reserve, lies allocated beside the log. When a write fails for lack of space, the
 * file is emptied and its space is allocated to the write-ahead log at once, behind its end, where
 * SQLite writes next: the process that fills the disk cannot take the space first. When the disk
 * has space again, the caller makes the reserve again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store.h"
#include "store/store_private.h"

static void reserve_path(const struct store *store, char path[static PATH_MAX])
{
    snprintf(
        path, PATH_MAX, "%.*s.reserve", (int)(strlen(store->path) - strlen(".db")), store->path);
}

int64_t reserve_find(const struct store *store)
{
    char path[PATH_MAX];
    struct stat status;
    reserve_path(store, path);
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

int store_make_reserve(struct store *store, int64_t bytes, struct fault *fault)
{
    char path[PATH_MAX];
    reserve_path(store, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int errnum = ftruncate(fd, bytes) < 0 ? errno : 0;
    if (!errnum && bytes > 0)
        errnum = posix_fallocate(fd, 0, bytes);
    close(fd);
    store->reserve_bytes = errnum ? 0 : bytes;
    if (errnum || bytes == 0)
        unlink(path);
    return errnum ? fault_set(fault, errnum, "%s: %s", path, strerror(errnum)) : 0;
}

/* On a file system that cannot allocate ahead, another process may take the space first. */
static void extend_wal(const struct store *store, int64_t bytes)
{
    char path[PATH_MAX + 8];
    struct stat status;
    snprintf(path, sizeof path, "%s-wal", store->path);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    for (; fstat(fd, &status) == 0 && bytes >= 4096; bytes /= 2)
        if (fallocate(fd, FALLOC_FL_KEEP_SIZE, status.st_size, bytes) == 0 || errno != ENOSPC)
            break;
    close(fd);
}

bool store_release_reserve(struct store *store)
{
    char path[PATH_MAX];
    int64_t bytes = store->reserve_bytes;
    if (bytes == 0)
        return false;
    reserve_path(store, path);
    store->reserve_bytes = 0;
    if (truncate(path, 0) < 0)
        return false;
    extend_wal(store, bytes);
    unlink(path);
    return true;
}
