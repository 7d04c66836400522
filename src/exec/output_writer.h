/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on the output file in the user's folder (`colloc-12.out`).
 *
 * The task may hold the file open in any number of processes, and no other process can shorten it
 * then without losing lines. So the task writes into a pipe, and a process beside it writes the
 * file. When the file has half of the limit, its content goes to `colloc-12.out.1`, and it begins
 * anew with a line that says so. What `colloc-12.out.1` had before is dropped.
 *
 *     shim ── program ── pipe ─╮
 *       ╰──── writer  ◄────────╯ ──► colloc-12.out, colloc-12.out.1
 *
 * The file stays the same one (inode), so that a reader which holds it open goes on, and the shim
 * finds it again when the task has ended.
 */
#ifndef COLLOC_EXEC_OUTPUT_WRITER_H
#define COLLOC_EXEC_OUTPUT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file that a writer writes. */
struct output_writer {
    int fd;            /* opened for reading and appending */
    const char *path;  /* absolute */
    int64_t max_bytes; /* of the file and the one before it together, positive */
    int64_t dropped;   /* bytes that no file has */
    int64_t reported;  /* of these, as the last line about them says */
};

/*
 * Appends output to the file, and begins it anew before it exceeds half of the limit. What cannot
 * be written (a full disk, a quota) is dropped, and reported once the file takes output again.
 */
void output_writer_append(struct output_writer *writer, const char *data, size_t size);

/* The file begins with this when it has begun anew and the content before went to FILE.1. */
#define OUTPUT_BEGUN_ANEW "colloc: the output before this is in "

/*
 * Puts a writer between this process, which is about to execute the task's program as its user, and
 * the file that its standard output is. Standard error follows where both are the same file. The
 * writer ends when no process holds the pipe any more; signals do not end it before.
 *
 * path: of the file; absolute
 * both: standard error is the same file
 *
 * Returns 0, or -errno: the output goes on to the file itself.
 */
int output_writer_start(const char *path, int64_t max_bytes, bool both);

#endif
