/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a task is to share the GPUs that were chosen for it: by streams (taking turns) or by MPS
 * (side by side), with which limits, and why so. A pure function.
 *
 * The rules of SHARING_AUTO follow what was measured on an H200 (docs/measured/h200.md,
 * docs/measured/mps.md): by MPS trainings that leave SMs free gain the most; one that nearly fills
 * the GPU leaves a smaller neighbour a third of its speed, unless it is held to a share of the SMs,
 * or the two take turns.
 */
#ifndef COLLOC_CORE_SHARE_H
#define COLLOC_CORE_SHARE_H

#include "core/core.h"

/*
 * How the task shares the GPUs chosen for it.
 *
 * `gpus`, `n`: indices into the view.
 * `exclusive`: no other task will be placed on them as long as this one runs.
 *
 * Returns the mode, its limits and the reason.
 */
struct sharing_mode sharing_choose(const struct core_settings *settings,
    const struct cluster_view *view, const struct task *task, const int *gpus, int n,
    bool exclusive);

/* Why, for people: "it leaves SMs free ...". "" for what was asked for. */
const char *sharing_reason_text(enum share_reason reason);

/* "as-asked", "alone", ...: stable, they stand in logs. And back: -EINVAL for no such name. */
const char *sharing_reason_name(enum share_reason reason);
int sharing_reason_parse(const char *name, enum share_reason *ret_reason);

#endif
