/* SPDX-License-Identifier: Apache-2.0 */
/* Charges users for the GPUs that their tasks hold. */
#ifndef COLLOC_CORE_STATE_CHARGES_H
#define COLLOC_CORE_STATE_CHARGES_H

#include "core/state/state.h"

/* Charges the GPU's residents up to now. To be called before anything changes that the charge
 * depends on. */
void core_accrue(struct core *core, struct gpu_view *gpu, int64_t now_us);

/* The same for all GPUs. */
void core_accrue_all(struct core *core, int64_t now_us);

/* A suspended task is charged for the memory that it had on each GPU, at a small rate. */
void core_accrue_suspended(struct core *core, int64_t now_us);

/* Applies an EVENT_USAGE. Returns 0 or -ENOMEM. */
int core_apply_usage(struct core *core, const struct event *event);

#endif
