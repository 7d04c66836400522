/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error messages: what happened, where, and what to do, for the user to correct it.
 *
 * Contract, for every function of the project:
 *   1. It returns 0 for success, a positive named answer, or -errno.
 *   2. A function that can meet a user's mistake takes a `struct fault *`, last but for the
 *      out-parameters, which may be NULL; it fills it when it returns -errno.
 */
#ifndef COLLOC_BASE_FAULT_H
#define COLLOC_BASE_FAULT_H

struct fault {
    char text[512]; /* "": none */
};

/* Writes the message, truncated to the buffer. `errnum` is positive. Returns -errnum, for `return
 * fault_set(fault, EINVAL, ...)`. */
int fault_set(struct fault *fault, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message. Returns `r`. */
int fault_prefix(struct fault *fault, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
