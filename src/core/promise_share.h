/* SPDX-License-Identifier: Apache-2.0 */
/* The share of the SMs that a client of MPS may have beside tasks that were promised a speed. */
#ifndef COLLOC_CORE_PROMISE_SHARE_H
#define COLLOC_CORE_PROMISE_SHARE_H

#include "core/view.h"

/*
 * Limits the share of a client of MPS so that the promises on these GPUs are predicted to hold. A
 * task that has a promise itself is not limited.
 *
 * gpus, n: indices into the view
 * percent: the limit so far; 0: none
 *
 * Returns the largest limit with which they do; `percent` where that is enough, or where no limit
 * helps.
 */
int promise_share_limit(
    const struct cluster_view *view, const struct task *task, const int *gpus, int n, int percent);

#endif
