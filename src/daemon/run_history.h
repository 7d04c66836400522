/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ended tasks took: runs of networks, for the estimators, and of commands (command_history.h).
 * Read from the records of the log at the start, and one more with each task that ends.
 */
#ifndef COLLOC_DAEMON_RUN_HISTORY_H
#define COLLOC_DAEMON_RUN_HISTORY_H

#include <jansson.h>

#include "base/fault.h"
#include "daemon/command_history.h"
#include "estimator/estimator.h"
#include "store/store.h"

/* The last ones, of each user as many as fit beside those of the others (user_counts.h); chosen: 2
 * MB, read in 0.1 s at the start. */
enum { RUN_HISTORY_MAX = 10000 };

struct run_history {
    struct past_run *runs; /* those of a user: the oldest first */
    size_t n, capacity;
    struct user_counts users; /* of the runs */
    struct command_history commands;
};

/* Reads the records of the log. Returns 0 or a fault. */
int run_history_load(struct run_history *history, struct store *store, struct fault *fault);
void run_history_fini(struct run_history *history);

/* Adds a task's record, if its memory was measured. */
void run_history_take(struct run_history *history, const json_t *record);

/* Returns what the record stores of a request (key `subject`), so that run_history_take knows the
 * network again: of the request the sequence length, optimizer and precision. The caller releases
 * it. */
json_t *run_history_subject(
    const struct estimate_request *request, uint64_t fingerprint, int64_t batch);

#endif
