/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Visits processes of which each may keep the visitor waiting without limit. So does a process
 * whose environment or command line is read, while one of its threads waits in mmap() for a file
 * system that does not answer: both reads need the lock of the process's memory map.
 *
 * A child process makes the visits one after another, and reports each. When a report does not come
 * in time, the child is killed, and another one continues behind the process that it hangs at:
 *
 *     visited   71 72 73 74 | 76 77 78
 *     child     first       | second      75 took longer than the limit
 */
#ifndef COLLOC_EXEC_LIMITED_VISIT_H
#define COLLOC_EXEC_LIMITED_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* For a read of one process; chosen: it takes far less than 1 ms, and a busy machine may let the
 * child wait. */
enum { VISIT_READ_MS = 200 };

enum visit_answer { VISIT_NO, VISIT_YES, VISIT_UNKNOWN };

struct limited_visit {
    const pid_t *pids; /* `n` of them */
    size_t n;
    int limit_ms; /* for each */

    /* In the child, which is made by _Fork: where the caller has threads, it must not allocate. It
     * may be killed at any moment. It has the standard descriptors and no others of the caller. */
    bool (*visit)(pid_t pid, void *context);

    /* In the caller, when one was skipped. */
    bool (*goes_on)(void *context, size_t n_unknown_so_far);
    void *context;
};

/*
 * Visits them until all are visited, or `goes_on` answers false.
 *
 * ret_answers: `n`, in the order of the pids; NULL: the number is enough
 *
 * Returns for how many `visit` answered true; or -errno when no child could be started.
 */
int limited_visit_run(const struct limited_visit *visit, enum visit_answer *ret_answers);

#endif
