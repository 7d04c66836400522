/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of the view, as the driver lists them. */
#ifndef COLLOC_CORE_STATE_LISTED_GPUS_H
#define COLLOC_CORE_STATE_LISTED_GPUS_H

#include "core/state/state.h"

/* Applies a GPUS. Returns 0 or -ENOMEM. */
int core_apply_gpus(struct core *core, const struct event *event);

#endif
