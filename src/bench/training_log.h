/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of a training's standard output: lines with a JSON object, as workloads/train.py prints
 * them. Other lines are ignored. Accepts any bytes.
 *
 *     {"event": "epoch", "seconds": 12.5, "from": 1.0, "to": 13.5, "samples": 50000}
 */
#ifndef COLLOC_BENCH_TRAINING_LOG_H
#define COLLOC_BENCH_TRAINING_LOG_H

#include <stddef.h>

#include "base/reading.h"

enum { TRAINING_EPOCHS_MAX = 64 }; /* further epochs are ignored */

struct training_epoch {
    int number; /* from 1 */
    double seconds, from_unix_s, to_unix_s;
    double samples;
};

struct training_report {
    struct reading began_unix_s, ready_unix_s, ended_unix_s; /* times of these events */
    struct reading reserved_mib;                             /* the allocator's peak */
    struct training_epoch epochs[TRAINING_EPOCHS_MAX];
    int n_epochs;
};

/* Adds one line to the report. */
void training_log_parse_line(struct training_report *report, const char *line, size_t size);

/* Assembles lines from output that comes in pieces of any size. Start with {0}. */
struct training_log {
    char line[4096]; /* longer lines are ignored */
    size_t size;
    bool too_long;
};
/* Adds all complete lines to the report; an incomplete one waits for its end. */
void training_log_feed(
    struct training_log *log, struct training_report *report, const char *bytes, size_t size);

#endif
