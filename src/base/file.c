/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes whole files: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

static int too_large(const char *name, size_t limit, struct fault *fault)
{
    return fault_set(fault, EFBIG, "%s: larger than %zu bytes", name, limit);
}

int file_read_fd(
    int fd, const char *name, size_t limit, struct fault *fault, char **ret_data, size_t *ret_size)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return fault_set(fault, errno, "%s: %s", name, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return fault_set(fault, EISDIR, "%s: is a folder", name);
    if (status.st_size > 0 && (size_t)status.st_size > limit)
        return too_large(name, limit, fault);

    char *data = NULL;
    size_t capacity = 0, size = 0,
           expected = status.st_size > 0 ? (size_t)status.st_size + 2 : 4096;
    int r = ARRAY_RESERVE(data, capacity, expected);
    for (ssize_t n = 1; r == 0 && n != 0;) {
        n = read(fd, data + size, capacity - 1 - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            r = fault_set(fault, errno, "%s: %s", name, strerror(errno));
        else if ((size += (size_t)n) > limit)
            r = too_large(name, limit, fault);
        else if (ARRAY_RESERVE(data, capacity, size + 2) < 0)
            r = fault_set(fault, ENOMEM, "%s: out of memory", name);
    }
    if (!data)
        return fault_set(fault, ENOMEM, "%s: out of memory", name);
    if (r < 0) {
        free(data);
        return r;
    }
    data[size] = '\0';
    *ret_data = data;
    *ret_size = size;
    return 0;
}

ssize_t file_read_start(const char *path, char *buffer, size_t size)
{
    buffer[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, buffer, size - 1);
    if (n < 0)
        n = -errno;
    close(fd);
    buffer[n > 0 ? n : 0] = '\0';
    return n;
}

int file_read(
    const char *path, size_t limit, struct fault *fault, char **ret_data, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int r = file_read_fd(fd, path, limit, fault, ret_data, ret_size);
    close(fd);
    return r;
}

int file_write_fd(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int file_sync_folder_of(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r;
}

int file_write_atomic(const char *path, const void *data, size_t size, mode_t mode)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return -ENAMETOOLONG;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = file_write_fd(fd, data, size);
    if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
        r = -errno;
    close(fd);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        unlink(temporary);
        return r;
    }
    return file_sync_folder_of(path);
}

static int make_folder(const char *path, mode_t mode)
{
    struct stat status;
    if (mkdir(path, mode) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    if (stat(path, &status) < 0)
        return -errno;
    return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}

int file_make_folders(const char *path, mode_t mode)
{
    char copy[PATH_MAX];
    if (!*path)
        return -ENOENT;
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return -ENAMETOOLONG;
    for (char *slash = copy + 1;; slash++) {
        slash += strcspn(slash, "/");
        char was = *slash;
        *slash = '\0';
        int r = make_folder(copy, mode);
        if (r < 0 || !was)
            return r;
        *slash = was;
    }
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    remove(path);
    return 0;
}

void file_remove_folder(const char *path)
{
    enum { DESCRIPTORS_MOST = 16 }; /* deeper folders are opened again */
    nftw(path, remove_entry, DESCRIPTORS_MOST, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
