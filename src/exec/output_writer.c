/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer is forked before the task's first process enters its cgroup. That process opens the
 * file and passes it on, with the pipe's end to read from, over a socket:
 *
 *     writer:  looks up the user and becomes it; sends a byte
 *     task:    has opened the file; waits for the byte; sends the pipe and the file; executes
 *     writer:  writes until no process holds the pipe
 */
#include "exec/output_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clamp.h"
#include "base/file.h"
#include "base/units.h"
#include "exec/identity.h"

#define PIECE_SIZE (64 * 1024) /* bytes; what a pipe of the kernel holds */
/* The file begins with this when it has begun anew and the content before went to FILE.1. */
#define BEGUN_ANEW "colloc: the output before this is in "

#define LINE_MAX_BYTES 4096 /* chosen: a longer line may be divided between the files */

/* ---- the two files ---- */

static int64_t file_size(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_size : 0;
}

/* Copies the whole file. Returns 0 or -errno. */
static int copy_file(int from, int to)
{
    static char piece[PIECE_SIZE];
    int64_t offset = 0;
    ssize_t n;
    while ((n = pread(from, piece, sizeof piece, offset)) > 0) {
        int r = file_write_fd(to, piece, (size_t)n);
        if (r < 0)
            return r;
        offset += n;
    }
    return n < 0 ? -errno : 0;
}

/* Moves the content of the file to FILE.1. Counts what neither has then as dropped: the content of
 * FILE.1, and that of the file if FILE.1 cannot take it. */
static int move_content(struct output_writer *writer)
{
    char older[PATH_MAX];
    if (snprintf(older, sizeof older, "%s.1", writer->path) >= (int)sizeof older)
        return -ENAMETOOLONG;
    int fd = output_open_default(older, true);
    if (fd < 0)
        return fd;
    writer->dropped += file_size(fd);
    int r = ftruncate(fd, 0) < 0 ? -errno : copy_file(writer->fd, fd);
    close(fd);
    return r;
}

/* `older`: the name of FILE.1, NULL: the content did not go there. */
static void report_dropped(struct output_writer *writer, const char *older)
{
    char line[NAME_MAX + 160], size[32];
    format_size(writer->dropped, size, sizeof size);
    if (older && writer->dropped)
        snprintf(line, sizeof line,
            BEGUN_ANEW "%s.1, and %s before that were dropped (setting "
                       "output-max)\n",
            older, size);
    else if (older)
        snprintf(line, sizeof line, BEGUN_ANEW "%s.1 (setting output-max)\n", older);
    else
        snprintf(line, sizeof line, "colloc: %s of the output before this were dropped\n", size);
    if (file_write_fd(writer->fd, line, strlen(line)) == 0)
        writer->reported = writer->dropped;
}

static void begin_anew(struct output_writer *writer)
{
    const char *slash = strrchr(writer->path, '/');
    int64_t size = file_size(writer->fd);
    bool is_moved = move_content(writer) == 0;
    if (!is_moved)
        writer->dropped += size;
    writer->renewal = !is_moved                               ? OUTPUT_DROPPED
                      : writer->renewal == OUTPUT_NOT_RENEWED ? OUTPUT_MOVED_ONCE
                                                              : OUTPUT_MOVED;
    if (ftruncate(writer->fd, 0) == 0)
        report_dropped(writer, is_moved ? slash + 1 : NULL);
}

static void write_piece(struct output_writer *writer, const char *data, size_t size)
{
    if (writer->dropped > writer->reported)
        report_dropped(writer, NULL);
    if (size && file_write_fd(writer->fd, data, size) < 0)
        writer->dropped += (int64_t)size;
}

/* The rest of a line may exceed the part of the file that is filled first, by this many bytes. */
static int64_t slack_of(const struct output_writer *writer)
{
    return writer->max_bytes / 8 < LINE_MAX_BYTES ? writer->max_bytes / 8 : LINE_MAX_BYTES;
}

/* What still goes into the file: the lines that fit, or else the rest of a line if it is short.
 * Returns the size. */
static size_t lines_that_fit(const char *data, size_t size, int64_t rest, int64_t slack)
{
    size_t fits = (size_t)clamp_int64(rest, 0, (int64_t)size);
    const char *end = memrchr(data, '\n', fits);
    size_t most = (size_t)clamp_int64(rest + slack, 0, (int64_t)size);
    if (!end)
        end = memchr(data, '\n', most);
    return end ? (size_t)(end - data) + 1 : 0;
}

void output_writer_append(struct output_writer *writer, const char *data, size_t size)
{
    int64_t before = file_size(writer->fd), slack = slack_of(writer);
    int64_t rest = writer->max_bytes / 2 - slack - before;
    if (before > 0 && (int64_t)size > rest) {
        size_t fits = lines_that_fit(data, size, rest, slack);
        write_piece(writer, data, fits);
        data += fits;
        size -= fits;
        begin_anew(writer);
    }
    write_piece(writer, data, size);
}

/* ---- the socket ---- */

enum { PASSED_PIPE, PASSED_FILE, PASSED }; /* the descriptors */

union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(PASSED * sizeof(int))];
};

/* Sends a byte, with descriptors unless they are NULL. Returns 0 or -errno. */
static int send_byte(int socket, const int *fds)
{
    char byte = 0;
    struct iovec part = {&byte, 1};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(PASSED * sizeof(int)),
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
        };
        memcpy(CMSG_DATA(&control.header), fds, PASSED * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

/* Waits for such a byte. Returns 0; -EPIPE: the other end was closed. */
static int receive_byte(int socket, int *ret_fds)
{
    char byte;
    struct iovec part = {&byte, 1};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, 0) != 1)
        return -EPIPE;
    if (ret_fds && control.header.cmsg_len != CMSG_LEN(PASSED * sizeof(int)))
        return -EPIPE;
    if (ret_fds)
        memcpy(ret_fds, CMSG_DATA(&control.header), PASSED * sizeof(int));
    return 0;
}

/* ---- the process ---- */

static bool become_user(const struct output_writer_task *task)
{
    struct identity identity;
    umask(task->umask);
    return identity_init(&identity, task->uid, task->gid) == 0 && identity_become(&identity) == 0;
}

/* Descriptors of the shim are closed: they would look open until it ends. */
static _Noreturn void run_writer(int socket, const struct output_writer_task *task)
{
    static char piece[PIECE_SIZE];
    struct output_writer writer = {
        .fd = STDOUT_FILENO, .path = task->path, .max_bytes = task->max_bytes};
    int64_t most = task->max_bytes / 8 < PIECE_SIZE ? task->max_bytes / 8 + 1 : PIECE_SIZE;
    int fds[PASSED];
    sigset_t all;
    ssize_t n;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (dup2(socket, STDERR_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0U, 0) < 0 ||
        !become_user(task) || send_byte(STDERR_FILENO, NULL) < 0 ||
        receive_byte(STDERR_FILENO, fds) < 0 || dup2(fds[PASSED_PIPE], STDIN_FILENO) < 0 ||
        dup2(fds[PASSED_FILE], STDOUT_FILENO) < 0)
        _exit(OUTPUT_NOT_RENEWED);
    close_range(STDERR_FILENO, ~0U, 0);
    while ((n = read(STDIN_FILENO, piece, (size_t)most)) > 0)
        output_writer_append(&writer, piece, (size_t)n);
    _exit((int)writer.renewal);
}

int output_writer_start(const struct output_writer_task *task, pid_t *ret_pid, int *ret_socket)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    pid_t writer = fork();
    if (writer == 0)
        run_writer(ends[0], task);
    int r = writer < 0 ? -errno : 0;
    close(ends[0]);
    if (r < 0) {
        close(ends[1]);
        return r;
    }
    *ret_pid = writer;
    *ret_socket = ends[1];
    return 0;
}

int output_writer_connect(int socket, bool both)
{
    int ends[2], r = receive_byte(socket, NULL);
    if (r == 0 && pipe2(ends, O_CLOEXEC) < 0)
        r = -errno;
    if (r < 0)
        return r;
    const int fds[PASSED] = {ends[0], STDOUT_FILENO};
    r = send_byte(socket, fds);
    if (r == 0 && (dup2(ends[1], STDOUT_FILENO) < 0 || (both && dup2(ends[1], STDERR_FILENO) < 0)))
        r = -errno;
    close(ends[0]);
    close(ends[1]);
    return r;
}
