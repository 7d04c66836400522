/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes were started with a variable in their environment. The kernel reads another
 * process's environment only while that process does not change its memory map: one that waits in
 * mmap(2) for a file system that does not answer makes the reader wait, too. So a child process
 * reads, and another takes its place when one process takes too long.
 */
#ifndef COLLOC_EXEC_MARKS_H
#define COLLOC_EXEC_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum mark { MARK_ABSENT, MARK_PRESENT, MARK_UNKNOWN };

/* How one process is asked, in the child: tree_has_variable; tests have their own. */
typedef bool mark_reader(pid_t pid, const char *variable);

/*
 * Asks `n` processes for `variable` ("KEY=VALUE"). Waits for MARKS_LIMIT_MS at most for each that
 * does not answer, and for MARKS_STUCK_MAX of these: the others are unknown.
 *
 * ret_marks: `n`, in the order of `pids`
 *
 * Returns 0, or -errno: no child could be started, and all are unknown.
 */
enum { MARKS_LIMIT_MS = 200, MARKS_STUCK_MAX = 8 };
int marks_read(const pid_t *pids, size_t n, const char *variable, mark_reader *read_mark,
    enum mark *ret_marks);

#endif
