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

/* For each process; chosen: a read takes far less than 1 ms, also on a busy machine. */
enum { VISIT_LIMIT_MS = 200 };

enum visit_answer { VISIT_NO, VISIT_YES, VISIT_UNKNOWN };

struct limited_visit {
    const pid_t *pids; /* `n` of them */
    size_t n;

    bool (*visit)(pid_t pid, void *context); /* in the child */
    bool (*goes_on)(
        void *context, size_t n_unknown_so_far); /* in the caller, when one was skipped */
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
