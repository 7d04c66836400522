/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of arrays with a stop rule have reported at its rungs. */
#ifndef COLLOC_CORE_STATE_SWEEPS_H
#define COLLOC_CORE_STATE_SWEEPS_H

#include "core/state/state.h"

/* An array is submitted, with or without a rule. Returns 0 or -ENOMEM. */
int core_begin_sweep(struct core *core, uint64_t array, const struct halving_rule *rule);

/*
 * Applies METRIC: the report is kept, and ranked for its task if that is live.
 *
 * Returns 0; CORE_NO_SUCH_TASK: there is no such array with a rule; CORE_NOT_NOW: the task does
 * not run, or has reported at this rung; or -ENOMEM.
 */
int core_apply_metric(struct core *core, const struct event *event);

/* Applies STOP: the task is being ended. Returns 0 or CORE_NOT_NOW. */
int core_apply_stop(struct task *task, const struct event *event);

/* Frees the reports of an array of which no task is left. */
void core_forget_sweep(struct core *core, uint64_t array);

void core_free_sweeps(struct core *core);

#endif
