/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences with which frameworks report a failure (exec/sentences.def). */
#ifndef COLLOC_EXEC_PATTERN_H
#define COLLOC_EXEC_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

enum log_cause {
    LOG_CAUSE_NONE,     /* no failure. A row with it is a line that only looks like one */
    LOG_CAUSE_SHORTAGE, /* GPU memory was short; the program may continue with less */
    LOG_CAUSE_DETAIL,   /* a line of a message about GPU memory that says how much was asked for */
    LOG_CAUSE_LIBRARY,  /* a library could not initialise; directly after a shortage, due to it */
    LOG_CAUSE_ALLOC_FAILED, /* a library got no GPU memory; also after the context broke */
    LOG_CAUSE_GPU_OOM,
    LOG_CAUSE_HOST_OOM,
    LOG_CAUSE_ASSERT,    /* an assertion in a kernel: the program's. It ends no other MPS client */
    LOG_CAUSE_HARDWARE,  /* the GPU itself is at fault */
    LOG_CAUSE_GPU_FAULT, /* the GPU stopped the process, perhaps for a co-resident's fault */
    LOG_CAUSE_MPS,       /* the MPS server ended, or refused the client */
    LOG_CAUSE_PROGRAM,
    LOG_CAUSE_KILLED,      /* a process of the task was killed; only the kernel knows why */
    LOG_CAUSE_CONSEQUENCE, /* a launcher or a peer reports another process's failure */
};

struct pattern {
    enum log_cause kind;
    const char *framework;
    bool thrown_only;     /* matches only as the exception that ends a traceback */
    const char *source;   /* the file that prints it, and versions */
    const char *parts[4]; /* in lower case; the line has all, each at the start of a word */
};

/* Returns the rows in their order. */
const struct pattern *pattern_table(size_t *ret_n);

/* Copies the text with its NUL into `lower`, which has as much room, for pattern_find. */
void pattern_lower(const char *text, char *lower);

/*
 * Finds the first row that matches a line.
 *
 * line:   in lower case.
 * thrown: it is the last line of a traceback.
 *
 * Returns the row, or NULL.
 */
const struct pattern *pattern_find(const char *line, bool thrown);

#endif
