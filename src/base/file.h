/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out. */
#ifndef COLLOC_BASE_FILE_H
#define COLLOC_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/fault.h"

/*
 * Reads a regular file of at most `limit` bytes into fresh memory (one NUL more behind it, not
 * counted in ret_size). The caller frees *ret_data. 0 or -errno (-EFBIG beyond the limit), with the
 * path in the fault.
 */
int file_read(
    const char *path, size_t limit, struct fault *fault, char **ret_data, size_t *ret_size);

/* The same from an open descriptor, from its current offset; `name` is for the fault. The
 * descriptor stays open. */
int file_read_fd(
    int fd, const char *name, size_t limit, struct fault *fault, char **ret_data, size_t *ret_size);

/* Writes all bytes, whatever the number of write calls. 0 or -errno. */
int file_write_fd(int fd, const void *data, size_t size);

/*
 * Replaces `path` whole or not at all, and durably: temporary file beside it, fsync, rename, fsync
 * of the folder. 0 or -errno.
 */
int file_write_atomic(const char *path, const void *data, size_t size, mode_t mode);

/* Makes the entry of `path` in its folder durable. 0 or -errno. */
int file_sync_folder_of(const char *path);

/* mkdir -p. Existing folders are left as they are. 0 or -errno. */
int file_make_folders(const char *path, mode_t mode);

#endif
