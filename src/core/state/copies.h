/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of GPU memory in host memory. */
#ifndef COLLOC_CORE_STATE_COPIES_H
#define COLLOC_CORE_STATE_COPIES_H

#include "core/state/state.h"

/* Counts for its user what the copy of the task takes now, instead of what was counted before. */
void core_count_copy(struct core *core, struct task *task);

/* Returns the GPU memory that a copy of the running task would take; not valid: not known. */
struct reading core_copy_bytes(const struct core *core, const struct task *task);

#endif
