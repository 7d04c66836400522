/* SPDX-License-Identifier: Apache-2.0 */
/* All estimators, for the table; and what several of them use. Internal to this component. */
#ifndef COLLOC_ESTIMATOR_ESTIMATOR_TABLE_H
#define COLLOC_ESTIMATOR_ESTIMATOR_TABLE_H

#include "estimator/estimator.h"

/* Appends a remark to the note. Returns `r`, so that `return estimate_note(e, ESTIMATE_UNKNOWN,
 * ...)` ends an estimate without an answer. */
int estimate_note(struct estimate *estimate, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Whose runs an estimate is based on. A user can make any run of a network take as little or as
 * much memory as the user wants. So others' runs must never lower the estimate of a task, and raise
 * it by a bounded amount only.
 */
enum past_runs_of { PAST_RUNS_OWN, PAST_RUNS_OF_OTHERS };

/* The estimator history, by the runs of the task's user or by those of others. Returns as
 * estimator->run. */
int history_estimate(
    const struct estimate_request *request, enum past_runs_of whose, struct estimate *ret_estimate);

/* Returns the most memory that a run of the same network had when it ran out, at this batch or a
 * smaller one, in bytes; 0: no run did. */
double history_at_least(const struct estimate_request *request, enum past_runs_of whose);

extern const struct estimator estimator_none;
extern const struct estimator estimator_declared;
extern const struct estimator estimator_summary;
extern const struct estimator estimator_horus;
extern const struct estimator estimator_graph;
extern const struct estimator estimator_history;
extern const struct estimator estimator_faketensor;
extern const struct estimator estimator_gpumemnet_mlp;
extern const struct estimator estimator_gpumemnet_transformer;

#endif
