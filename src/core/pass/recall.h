/* SPDX-License-Identifier: Apache-2.0 */
/* The stage in which ranks of NCCL that have been away for long come back. */
#ifndef COLLOC_CORE_PASS_RECALL_H
#define COLLOC_CORE_PASS_RECALL_H

#include "core/state/state.h"

/* Resumes tasks whose ranks have to be back (core_recall_us), or stops tasks for them. Returns 0 or
 * -ENOMEM. */
int core_recall_ranks(struct core *core, int64_t now_us);

#endif
