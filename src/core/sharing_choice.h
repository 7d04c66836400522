/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a task shares the GPUs that were chosen for it: time-sliced (taking turns) or through MPS
 * (side by side), with which limits, and why. A pure function.
 *
 * SHARING_AUTO is MPS, unless the interference model (sharing/interference.h) predicts that the
 * tasks of the GPU get clearly more done otherwise. docs/collocation.md has the rules.
 */
#ifndef COLLOC_CORE_SHARING_CHOICE_H
#define COLLOC_CORE_SHARING_CHOICE_H

#include "core/settings.h"

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

/* Is the task time-sliced on whatever GPUs it gets? A suspended task is: no client of MPS can be
 * suspended. */
bool sharing_rules_out_mps(const struct task *task);

/* Returns the reason for people: "side by side, ..."; "" for the mode that was requested. */
const char *sharing_reason_text(enum share_reason reason);

/* Returns "as-asked", "alone", ...: stable, since they stand in logs. */
const char *sharing_reason_name(enum share_reason reason);

#endif
