/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes whole files. */
#ifndef COLLOC_BASE_FILE_H
#define COLLOC_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/fault.h"

/*
 * Reads a file of at most `limit` bytes.
 *
 * ret_data: the caller frees it; a NUL follows that *ret_size does not count
 *
 * Returns 0, or -errno with the path in the fault; -EFBIG beyond the limit.
 */
int file_read(
    const char *path, size_t limit, struct fault *fault, char **ret_data, size_t *ret_size);

/*
 * Reads the beginning of a file with one read(2): for the short files of /proc and /sys, which one
 * read returns whole.
 *
 * buffer: gets at most `size` - 1 bytes and a NUL
 *
 * Returns the number of bytes; or -errno, with an empty text in the buffer.
 */
ssize_t file_read_start(const char *path, char *buffer, size_t size);

/* The same from an open descriptor, which stays open, from its current offset. `name` is for the
 * fault. */
int file_read_fd(
    int fd, const char *name, size_t limit, struct fault *fault, char **ret_data, size_t *ret_size);

/* Writes all bytes, with several write calls if needed. Returns 0 or -errno. */
int file_write_fd(int fd, const void *data, size_t size);

/* Replaces a file atomically and durably: temporary file in the same folder, fsync, rename, fsync
 * of the folder. Returns 0 or -errno. */
int file_write_atomic(const char *path, const void *data, size_t size, mode_t mode);

/* Makes the folder entry of `path` durable. Returns 0 or -errno. */
int file_sync_folder_of(const char *path);

/* mkdir -p; existing folders are not changed. Returns 0 or -errno. */
int file_make_folders(const char *path, mode_t mode);

/* rm -r, as far as it is allowed; other file systems and what links point to stay. */
void file_remove_folder(const char *path);

#endif
