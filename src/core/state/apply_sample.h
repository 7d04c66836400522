/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a sample of a GPU. */
#ifndef COLLOC_CORE_STATE_APPLY_SAMPLE_H
#define COLLOC_CORE_STATE_APPLY_SAMPLE_H

#include "core/state/state.h"

/* Applies an EVENT_SAMPLE. Sets core->pass_needed when a task may be placed after it. Returns 0,
 * CORE_NOT_NOW or -ENOMEM. */
int core_apply_sample(struct core *core, const struct event *event);

#endif
