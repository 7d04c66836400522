/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process that is asked for an answer, with a bound. It does what may hang: it reads files
 * in a user's home, or calls a daemon that may not answer. The caller goes on without it then.
 *
 *     struct child_answer child;
 *     if (child_answer_start(&child, search_home, &search) < 0) ...
 *     ssize_t n = child_answer_read(&child, 1000, text, sizeof text);
 *     child_answer_end(&child, CHILD_GIVEN_UP);
 */
#ifndef COLLOC_BASE_CHILD_ANSWER_H
#define COLLOC_BASE_CHILD_ANSWER_H

#include <stddef.h>
#include <sys/types.h>

struct child_answer {
    pid_t pid;
    int fd; /* of its answer */
};

/*
 * Starts a child process.
 *
 * run: what it does; `fd` takes its answer and is closed by an exec. What it returns is its exit
 *      status
 *
 * Returns 0; -errno: there is no child.
 */
int child_answer_start(
    struct child_answer *ret_child, int (*run)(void *context, int fd), void *context);

/*
 * Reads the answer until the child has closed it. What does not fit is read and dropped: a program
 * may fail when its output is closed.
 *
 * limit_ms: the bound; -1: none
 * text:     `size` bytes; not ended by a NUL
 *
 * Returns how many bytes the answer has, perhaps more than `size`; -ETIMEDOUT: it has not ended in
 * time; -errno.
 */
ssize_t child_answer_read(const struct child_answer *child, int limit_ms, void *text, size_t size);

enum child_end {
    CHILD_AWAITED,  /* it ends by itself, now that it has answered */
    CHILD_KILLED,   /* and awaited: the caller may wait for any child later */
    CHILD_GIVEN_UP, /* killed; it may hang in a file system, and ends when that answers */
    CHILD_LEFT,     /* it goes on alone */
};

/* Closes the answer. Returns the exit status of a child that was awaited; -1: a signal ended it, or
 * it was not awaited. */
int child_answer_end(struct child_answer *child, enum child_end end);

#endif
