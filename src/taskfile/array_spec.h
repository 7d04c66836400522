/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks an array has, as text: "0-99%8", "1,3,7", "0-10:2". */
#ifndef COLLOC_TASKFILE_ARRAY_SPEC_H
#define COLLOC_TASKFILE_ARRAY_SPEC_H

#include <stdio.h>

#include "base/fault.h"

enum {
    ARRAY_TASKS_MAX = 10000,     /* of one array; chosen: half of what a user may have queued */
    ARRAY_INDEX_MAX = 999999999, /* chosen: nine digits */
};

struct array_spec {
    int *indices; /* ascending, each once; on the heap */
    int count;
    int limit; /* of tasks at a time; 0: none */
};

/*
 * Reads a list of indices and ranges, and "%N" behind it: at most N of them at a time.
 *
 * ret_spec: for array_spec_fini
 *
 * Returns 0; or with a fault -EINVAL, or -ERANGE for more tasks or a larger index than allowed.
 */
int array_spec_parse(const char *text, struct fault *fault, struct array_spec *ret_spec);

/* Releases the indices. */
void array_spec_fini(struct array_spec *spec);

/* Writes indices as such a text, without a limit: "0-98:2,101". */
void array_indices_write(FILE *out, const int *indices, int count);

#endif
