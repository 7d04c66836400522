/* SPDX-License-Identifier: Apache-2.0 */
/* What ended tasks took, kept for the estimators: from the records of the log, and one more with
 * each task that ends.
 */
#ifndef COLLOC_DAEMON_RUN_HISTORY_H
#define COLLOC_DAEMON_RUN_HISTORY_H

#include <jansson.h>

#include "base/fault.h"
#include "estimator/estimator.h"
#include "store/store.h"

enum { RUN_HISTORY_MAX = 10000 }; /* the last ones */

struct run_history {
    struct past_run *runs;
    size_t n, room, next; /* the oldest is overwritten */
};

/* Reads the records that are there. 0 or a fault. */
int run_history_load(struct run_history *history, struct store *store, struct fault *fault);
void run_history_fini(struct run_history *history);

/* Takes a task's record when it tells anything: whose network is known and whose memory was seen.
 */
void run_history_take(struct run_history *history, const json_t *record);

/* What a record keeps of a request, so that run_history_take knows the network again; NULL without a
 * summary. */
json_t *run_history_subject(const struct estimate_request *request);

#endif
