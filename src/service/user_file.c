/* SPDX-License-Identifier: Apache-2.0 */
/* A read is work for a queue of helpers (service/helper_queue.h), whose answer is the piece. */
#include "service/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/named_file.h"
#include "service/helper_queue.h"

struct user_files {
    struct helper_queue *queue;
};

/* ---- in the helper ---- */

static int read_piece(const struct user_file_read *read, struct user_file_piece *piece)
{
    struct stat status;
    int fd = named_file_open(read->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EISDIR;
    piece->offset = user_file_offset(read->offset, status.st_size);
    if (piece->offset > status.st_size) /* it has become shorter (exec/output_writer.h) */
        piece->offset = status.st_size;
    ssize_t n = piece->offset < status.st_size
                    ? pread(fd, piece->data, sizeof piece->data, piece->offset)
                    : 0;
    piece->size = n;
    return n < 0 ? -errno : 0;
}

static int fault_of(const struct user_file_read *read, int r, struct fault *fault)
{
    return fault_set(fault, -r, "%.400s: %s", read->path,
        r == -EISDIR ? "is no regular file" : named_file_error(-r));
}

static int read_as_user(
    void *context, const struct user_helper_order *order, void *ret_answer, struct fault *fault)
{
    const struct user_file_read *read = context;
    int r = user_helper_become(order);
    if (r == 0)
        r = read_piece(read, ret_answer);
    return r < 0 ? fault_of(read, r, fault) : 0;
}

/* ---- in the daemon ---- */

/* The user may control the helper: the sizes are checked. */
static bool is_sane(const struct user_file_piece *piece)
{
    return piece->offset >= 0 && piece->size >= 0 && piece->size <= USER_FILE_PIECE;
}

static void on_read(void *context, int r, const void *answer, const struct fault *fault)
{
    struct user_file_read *read = context;
    const struct user_file_piece *piece = answer;
    struct fault words = *fault;
    if (r == -ETIMEDOUT)
        fault_set(&words, ETIMEDOUT, "%.400s: the file system did not answer within %d s",
            read->path, USER_FILE_LIMIT_MS / 1000);
    if (r == HELPER_QUEUE_BUSY)
        r = fault_set(&words, ETIMEDOUT, "%.400s: too many files are being read that do not answer",
            read->path);
    if (r == 0 && !is_sane(piece))
        r = fault_set(&words, EIO, "%.400s: the helper's answer makes no sense", read->path);
    read->on_done(read->context, r, r == 0 ? piece : NULL, &words);
    free(read);
}

int user_files_read(struct user_files *files, const struct user_file_read *read)
{
    struct user_file_read *copy = malloc(sizeof *copy);
    if (!copy)
        return -ENOMEM;
    *copy = *read;
    const struct helper_work work = {.uid = read->uid,
        .gid = read->gid,
        .answer_size = sizeof(struct user_file_piece),
        .context = copy,
        .run = read_as_user,
        .on_done = on_read};
    int r = helper_queue_add(files->queue, &work);
    if (r < 0)
        free(copy);
    return r;
}

/* ---- life ---- */

struct user_files *user_files_create(uv_loop_t *loop)
{
    const struct helper_queue_options options = {.loop = loop,
        .helpers = USER_FILE_HELPERS,
        .per_user = USER_FILE_HELPERS_PER_USER,
        .limit_ms = USER_FILE_LIMIT_MS,
        .wait_ms = USER_FILE_LIMIT_MS,
        .what = "read the file"};
    struct user_files *files = calloc(1, sizeof *files);
    if (!files)
        return NULL;
    files->queue = helper_queue_create(&options);
    if (files->queue)
        return files;
    free(files);
    return NULL;
}

void user_files_close(struct user_files *files)
{
    if (files)
        helper_queue_close(files->queue);
}

void user_files_destroy(struct user_files *files)
{
    if (!files)
        return;
    helper_queue_destroy(files->queue);
    free(files);
}
