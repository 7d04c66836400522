/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a task shares the GPUs that were chosen for it: time-sliced (taking turns) or through MPS
 * (side by side), with which limits, and why. A pure function.
 *
 * The rules of SHARING_AUTO follow what was measured on an H200 (docs/measured/h200.md,
 * docs/measured/mps.md). Trainings that leave SMs free gain most from MPS. One that nearly fills
 * the GPU leaves a smaller co-resident a third of its speed, unless it is limited to a part of the
 * SMs, or the two are time-sliced.
 */
#ifndef COLLOC_CORE_SHARING_CHOICE_H
#define COLLOC_CORE_SHARING_CHOICE_H

#include "core/core.h"

/*
 * How the task shares the GPUs chosen for it.
 *
 * gpus, n:   indices into the view.
 * exclusive: no other task will be placed on them as long as this one runs.
 *
 * Returns the mode, its limits and the reason.
 */
struct sharing_mode sharing_choose(const struct core_settings *settings,
    const struct cluster_view *view, const struct task *task, const int *gpus, int n,
    bool exclusive);

/* Returns the reason for people: "it leaves SMs free ..."; "" for the mode that was requested. */
const char *sharing_reason_text(enum share_reason reason);

/* Returns "as-asked", "alone", ...: stable, since they stand in logs. */
const char *sharing_reason_name(enum share_reason reason);

/* Reads such a name. Returns 0, or -EINVAL for another text. */
int sharing_reason_parse(const char *name, enum share_reason *ret_reason);

#endif
