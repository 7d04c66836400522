/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dependencies: a task that starts only when others have ended. A dependency names a range of ids:
 * one task, or the tasks of an array. As text: "ok:12,any:13".
 */
#ifndef COLLOC_CORE_DEPENDENCY_H
#define COLLOC_CORE_DEPENDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum { DEPENDENCIES_MAX = 64 }; /* of one task; chosen: for more, depend on a task in between */

enum dependency_kind {
    DEPENDENCY_OK,     /* all have completed */
    DEPENDENCY_ANY,    /* all have ended */
    DEPENDENCY_NOT_OK, /* one has ended without completing */
    DEPENDENCY_KINDS
};

struct dependency {
    enum dependency_kind kind;
    uint64_t first, last; /* ids; equal for one task */
    bool each;            /* of a SUBMIT of an array: each task depends on one of them, in order */
};

/* Returns "ok", "any" or "notok": stored in logs. */
const char *dependency_kind_name(int kind);

/* The state of a dependency. */
struct dependency_end {
    struct dependency dependency;
    bool holds;  /* else it never can */
    uint64_t by; /* the task that decided it by its end */
};

enum dependency_answer {
    DEPENDENCY_WAITS,
    DEPENDENCY_HOLDS,
    DEPENDENCY_NEVER, /* it can never hold */
};

/*
 * Judges a dependency.
 *
 * n_live:   how many of its tasks have not ended
 * n_failed: how many have ended otherwise than completed
 */
enum dependency_answer dependency_judge(
    enum dependency_kind kind, int64_t n_live, int64_t n_failed);

/* A dependency as it was written: the driver finds the tasks that it names. */
struct dependency_term {
    enum dependency_kind kind;
    bool each;   /* "each:12": each task of an array on the one of another array */
    uint64_t id; /* of a task or an array */
    int index;   /* of a task of the array; -1: not given */
};

/*
 * Reads "ok:12,any:13_7:14", and Slurm's "afterok:12,afterany:13,aftercorr:14".
 *
 * ret_list: of DEPENDENCIES_MAX
 *
 * Returns how many, 1 or more; or -EINVAL with a fault.
 */
int dependency_parse(const char *text, struct fault *fault, struct dependency_term *ret_list);

/* Are they on the same tasks, in the same way? */
bool dependency_is_same(const struct dependency *a, const struct dependency *b);

/* Writes "ok:12", or "ok:12-21" for a range. Returns `buffer`. */
const char *dependency_format(const struct dependency *dependency, char *buffer, size_t size);

#endif
