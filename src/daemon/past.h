/* SPDX-License-Identifier: Apache-2.0 */
/* What ended tasks took, kept for the estimators: from the records of the log, and one more with
 * each task that ends.
 */
#ifndef COLLOC_DAEMON_PAST_H
#define COLLOC_DAEMON_PAST_H

#include <jansson.h>

#include "base/fault.h"
#include "estimator/estimator.h"
#include "store/store.h"

enum { PAST_RUNS_MAX = 10000 }; /* the last ones */

struct past {
    struct past_run *runs;
    size_t n, room, next; /* the oldest is overwritten */
};

/* Reads the records that are there. 0 or a fault. */
int past_load(struct past *past, struct store *store, struct fault *fault);
void past_fini(struct past *past);

/* Takes a task's record when it tells anything: whose network is known and whose memory was seen.
 */
void past_take(struct past *past, const json_t *record);

/* What a record keeps of a request, so that past_take knows the network again; NULL without a
 * summary. */
json_t *past_subject(const struct estimate_request *request);

#endif
