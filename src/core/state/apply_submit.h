/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a submission. */
#ifndef COLLOC_CORE_STATE_APPLY_SUBMIT_H
#define COLLOC_CORE_STATE_APPLY_SUBMIT_H

#include "core/state/state.h"

/* Applies a SUBMIT. Returns 0, CORE_NOT_NOW or -ENOMEM. */
int core_apply_submit(struct core *core, const struct event *event);

#endif
