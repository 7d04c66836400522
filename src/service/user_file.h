/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a piece of a file that a user named. A helper process opens and reads it as that user
 * (helper_queue.h). So the loop does not wait for a file system that does not answer, and a user
 * reaches no file through the daemon that the user may not read.
 *
 * Contract:
 * 1. A request is answered within about USER_FILE_LIMIT_MS, whatever the file system does; within
 *    twice that if the machine's processors are busy.
 * 2. A user has at most USER_FILE_HELPERS_PER_USER helpers, all users together USER_FILE_HELPERS.
 *    Further requests wait.
 */
#ifndef COLLOC_SERVICE_USER_FILE_H
#define COLLOC_SERVICE_USER_FILE_H

#include <stdint.h>
#include <uv.h>

#include "base/fault.h"

enum {
    USER_FILE_PIECE = 256 * 1024,
    USER_FILE_LIMIT_MS = 2000,
    USER_FILE_HELPERS = 64,
    USER_FILE_HELPERS_PER_USER = 8,
};

/* The helper's answer. */
struct user_file_piece {
    int64_t offset; /* of `data` in the file, in bytes */
    int64_t size;   /* of `data`: less than its capacity at the file's end */
    char data[USER_FILE_PIECE];
};

struct user_file_read {
    uid_t uid;
    gid_t gid;
    char path[5000];
    int64_t offset; /* negative: from the end */
    void *context;

    /*
     * answer: 0 with the piece, borrowed; -ENOENT; -EACCES; -EISDIR: it is no regular file; -ELOOP:
     * a link to an open file of a process; -ETIMEDOUT; another -errno. With a fault.
     */
    void (*on_done)(
        void *context, int answer, const struct user_file_piece *piece, const struct fault *fault);
};

struct user_files;

/* Where in a file of `size` bytes an offset is that, when negative, counts from its end. */
static inline int64_t user_file_offset(int64_t offset, int64_t size)
{
    return offset >= 0 ? offset : size + offset > 0 ? size + offset : 0;
}

/* Returns NULL when memory is out. */
struct user_files *user_files_create(uv_loop_t *loop);

/* Ends all reads with -ECANCELED. NULL is fine. */
void user_files_close(struct user_files *files);

/* Releases it once the loop has run for the last time. NULL is fine. */
void user_files_destroy(struct user_files *files);

/* Begins a read; `read` is copied. Returns 0, on_done will be called, perhaps from within; or
 * -ENOMEM. */
int user_files_read(struct user_files *files, const struct user_file_read *read);

#endif
