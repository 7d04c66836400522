/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that answers line by line, with a time limit for each answer. */
#ifndef COLLOC_DOCTOR_LINE_CHILD_H
#define COLLOC_DOCTOR_LINE_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct line_child {
    pid_t pid; /* 0: none */
    int pidfd;
    int to, from;
};

/*
 * Starts a program.
 *   argument: its only one, or NULL
 *   preload:  LD_PRELOAD of the program, or NULL
 * Returns 0 or -errno.
 */
int line_child_start(
    struct line_child *child, const char *program, const char *argument, const char *preload);

/*
 * Sends a line and reads one.
 *   request:    with its end; NULL: only reads
 *   ret_answer: without its end, cut to the buffer
 * Returns 0, -ETIMEDOUT, -EPIPE (the child has ended) or another -errno.
 */
int line_child_ask(
    struct line_child *child, const char *request, int64_t limit_us, char *ret_answer, size_t size);

/* Kills the child and waits for it, no longer than a second: the kernel may keep one that hangs in
 * a driver. */
void line_child_end(struct line_child *child);

#endif
