/* SPDX-License-Identifier: Apache-2.0 */
/* How active a GPU is, for the policies that order GPUs by it. */
#ifndef COLLOC_POLICY_GPU_ACTIVITY_H
#define COLLOC_POLICY_GPU_ACTIVITY_H

#include "core/policy.h"

/* Above every known activity: such a GPU comes last where less is better. */
#define GPU_ACTIVITY_UNKNOWN 2.0

/*
 * The activity of a GPU over the monitoring window.
 *
 * Returns 0 for an idle GPU, else 0 to 1: its SMACT, or its utilisation (an upper bound of SMACT)
 * where SMACT is not reported. GPU_ACTIVITY_UNKNOWN when neither is known.
 */
double gpu_activity(const struct gpu_view *gpu);

#endif
