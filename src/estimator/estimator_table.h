/* SPDX-License-Identifier: Apache-2.0 */
/* The estimators there are, for the table in estimator.c. Internal to the room. */
#ifndef COLLOC_ESTIMATOR_ESTIMATOR_TABLE_H
#define COLLOC_ESTIMATOR_ESTIMATOR_TABLE_H

#include "estimator/estimator.h"

/* Adds a remark to the note; the answer is `r`, so that "return estimate_note(e, ESTIMATE_UNKNOWN,
 * ...)" reads well. */
int estimate_note(struct estimate *estimate, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a run of the same network had when it ran out of memory, at this batch or a smaller one; 0:
 * none did. */
double history_at_least(const struct estimate_request *request);

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
