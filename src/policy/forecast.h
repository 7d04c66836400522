/* SPDX-License-Identifier: Apache-2.0 */
/* When the waiting tasks are expected to start, by the prediction that backfill uses. */
#ifndef COLLOC_POLICY_FORECAST_H
#define COLLOC_POLICY_FORECAST_H

#include "core/core.h"

/* Chosen: tasks that are forecast. Each takes a prediction of all GPUs, so that of more than a
 * thousand GPUs fewer tasks are. */
enum {
    FORECAST_QUEUED_MAX = 64, /* of the main queue */
    FORECAST_BEGINS_MAX = 64, /* of those that wait for their begin moment */
    FORECAST_TASKS_MAX = FORECAST_QUEUED_MAX + FORECAST_BEGINS_MAX,
};

struct forecast {
    uint64_t task;
    int64_t start_us; /* START_UNKNOWN: it cannot be predicted */
    int64_t begin_us; /* it does not start before; START_UNKNOWN: it waits for no begin moment */
};

/*
 * Predicts when the first tasks of the main queue start, and those that wait for their begin
 * moment, if they start in their order (backfilled ones start earlier) and no further task comes.
 *
 * ret_starts: room for FORECAST_TASKS_MAX; first those of the main queue in its order, then the
 *             others, the earliest begin moment first
 *
 * Returns how many are set, or -ENOMEM.
 */
int forecast_starts(const struct core *core, int64_t now_us, struct forecast *ret_starts);

#endif
