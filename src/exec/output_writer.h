/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on the output file in the user's folder (`colloc-12.out`).
 *
 * The task may hold the file open in any number of processes, and no other process can shorten it
 * then without losing lines. So the task writes into a pipe, and a process beside it writes the
 * file. When the file has half of the limit, its content goes to `colloc-12.out.1`, and it begins
 * anew with a line that says so. The former content of `colloc-12.out.1` is dropped.
 *
 *     shim ── program ── pipe ─╮
 *       ╰──── writer  ◄────────╯ ──► colloc-12.out, colloc-12.out.1
 *
 * The file stays the same one (inode), so that a reader which holds it open continues, and the shim
 * finds it again when the task has ended.
 *
 * The writer is the shim's child and is not in the task's cgroup: a kill of the task does not end
 * it, and it still writes the rest of the pipe. Its exit status says where the attempt's output is.
 */
#ifndef COLLOC_EXEC_OUTPUT_WRITER_H
#define COLLOC_EXEC_OUTPUT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/output_files.h"

/* The file that a writer writes. */
struct output_writer {
    int fd;            /* opened for reading and appending */
    const char *path;  /* absolute */
    int64_t max_bytes; /* of the file and the one before it together, positive */
    int64_t dropped;   /* bytes that no file has */
    int64_t reported;  /* of these, as the last line about them says */
    enum output_renewal renewal;
};

/*
 * Appends output to the file, and begins it anew before it exceeds half of the limit. What cannot
 * be written (a full disk, a quota) is dropped, and reported once the file takes output again.
 */
void output_writer_append(struct output_writer *writer, const char *data, size_t size);

/* The task's data for a writer. */
struct output_writer_task {
    const char *path; /* of the default output file; absolute */
    int64_t max_bytes;
    uid_t uid;
    gid_t gid;
    mode_t umask;
};

/*
 * Starts a writer as the task's user. It waits for output_writer_connect, and ends when no process
 * holds the task's pipe, or else `ret_socket`, any more; signals do not end it before. Its exit
 * status is an enum output_renewal.
 *
 * ret_pid:    of a child of this process
 * ret_socket: close-on-exec; for the process that becomes the task
 *
 * Returns 0 or -errno.
 */
int output_writer_start(const struct output_writer_task *task, pid_t *ret_pid, int *ret_socket);

/*
 * Puts the writer between this process, which is about to execute the task's program as its user,
 * and the file that its standard output is. Standard error follows where both are the same file.
 * Waits until the writer has looked up its user.
 *
 * both: standard error is the same file
 *
 * Returns 0, or -errno: the output goes on to the file itself.
 */
int output_writer_connect(int socket, bool both);

#endif
