/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training tells of itself on its standard output: lines with a JSON object, as
 * workloads/train.py prints them. Other lines are its own business.
 */
#ifndef COLLOC_BENCH_TOLD_H
#define COLLOC_BENCH_TOLD_H

#include <stddef.h>

#include "base/reading.h"

enum { TOLD_EPOCHS_MAX = 64 }; /* later ones are counted, not kept */

struct told_epoch {
    int number; /* from 1 */
    double seconds, from_unix_s, to_unix_s;
    double samples;
};

struct told {
    struct reading began_unix_s, ready_unix_s, ended_unix_s; /* "begin", "ready", "end" */
    struct reading reserved_mib;                             /* the most its allocator held */
    struct told_epoch epochs[TOLD_EPOCHS_MAX];
    int n_epochs;
};

/* Takes in one line. Anything may be in it. */
void told_line(struct told *told, const char *line, size_t size);

/* The same for output as it comes, in pieces of any size: keeps what has no end yet. Starts as {0}.
 */
struct told_stream {
    char line[4096]; /* a longer line is none of ours */
    size_t size;
    bool too_long;
};
void told_bytes(struct told_stream *stream, struct told *told, const char *bytes, size_t size);

#endif
