/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults: what went wrong, where, and what to do, in words for the person who caused or must mend
 * it.
 *
 * Return convention of the whole project: 0 is done, a positive value is a named answer (no error),
 * a negative value is -errno and a fault. A function that can meet a user's mistake takes a `struct
 * fault *` (last but for out-parameters; may be NULL) and fills it when it returns negative.
 */
#ifndef COLLOC_BASE_FAULT_H
#define COLLOC_BASE_FAULT_H

struct fault {
    char text[512]; /* "" when there was none */
};

/* Writes the text (cut at the buffer's end) and returns -errnum, so that `return fault_set(f,
 * EINVAL, ...)` reads well.
 */
int fault_set(struct fault *fault, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that is there. Returns `r` unchanged. */
int fault_prefix(struct fault *fault, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
