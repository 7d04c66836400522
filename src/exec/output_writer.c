/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer is a process of the task: it runs as the task's user, in its cgroup. It is no child of
 * the task's program, which may wait for any of its children: a process in between starts it and
 * ends, so that the shim becomes its parent.
 */
#include "exec/output_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "exec/output_files.h"

#define PIECE_SIZE     (64 * 1024) /* bytes; what a pipe of the kernel holds */
#define LINE_MAX_BYTES 4096        /* chosen: a longer line may be divided between the files */

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
            OUTPUT_BEGUN_ANEW "%s.1, and %s before that were dropped (setting "
                              "output-max)\n",
            older, size);
    else if (older)
        snprintf(line, sizeof line, OUTPUT_BEGUN_ANEW "%s.1 (setting output-max)\n", older);
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
    size_t fits = rest <= 0 ? 0 : (size_t)rest < size ? (size_t)rest : size;
    const char *end = memrchr(data, '\n', fits);
    size_t most = rest + slack <= 0               ? 0
                  : (size_t)(rest + slack) < size ? (size_t)(rest + slack)
                                                  : size;
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

/* ---- the process ---- */

/* Descriptors of the shim and of the launch are closed: they would look open until it ends. */
static _Noreturn void run_writer(int from, const char *path, int64_t max_bytes)
{
    static char piece[PIECE_SIZE];
    struct output_writer writer = {.fd = STDOUT_FILENO, .path = path, .max_bytes = max_bytes};
    sigset_t all;
    size_t most = max_bytes / 8 < PIECE_SIZE ? (size_t)(max_bytes / 8) + 1 : PIECE_SIZE;
    ssize_t n;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (dup2(from, STDIN_FILENO) < 0 || close_range(STDERR_FILENO, ~0U, 0) < 0)
        _exit(1);
    while ((n = read(STDIN_FILENO, piece, most)) > 0)
        output_writer_append(&writer, piece, (size_t)n);
    _exit(0);
}

int output_writer_start(const char *path, int64_t max_bytes, bool both)
{
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t between = fork();
    if (between == 0) {
        pid_t writer = fork();
        if (writer == 0)
            run_writer(ends[0], path, max_bytes);
        _exit(writer < 0);
    }
    if (between > 0)
        waitpid(between, &status, 0);
    int r = status != 0                                ? -EAGAIN
            : dup2(ends[1], STDOUT_FILENO) < 0         ? -errno
            : both && dup2(ends[1], STDERR_FILENO) < 0 ? -errno
                                                       : 0;
    close(ends[0]);
    close(ends[1]);
    return r;
}
