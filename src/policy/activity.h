/* SPDX-License-Identifier: Apache-2.0 */
/* How active a GPU is, for the policies that order GPUs by it. */
#ifndef COLLOC_POLICY_ACTIVITY_H
#define COLLOC_POLICY_ACTIVITY_H

#include "core/policy.h"

/*
 * 0..1: 0 when idle, mean SMACT over the window, or utilisation (its upper bound) where SMACT is
 * not reported. 2 when neither is known, so that such a GPU goes last where less is better.
 */
double activity_of(const struct gpu_view *gpu);

#endif
