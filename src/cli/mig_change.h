/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc mig` changes the instances of a GPU that no task and no process uses. */
#ifndef COLLOC_CLI_MIG_CHANGE_H
#define COLLOC_CLI_MIG_CHANGE_H

#include "base/fault.h"
#include "cli/command.h"

struct gpu_set;
struct mig_gpu;
struct mig_plan;

/*
 * Replaces the instances of a GPU by those of the plan.
 *
 * All checks come first: a destroyed instance cannot be restored with its processes. A task may
 * hold the GPU before it has a process there, so the daemon is asked, if one runs.
 *
 * invocation: whose --socket names the daemon.
 *
 * Returns 0, or -errno with a fault that says whether anything was changed: -EPERM (not root),
 * -EBUSY, or as mig_apply.
 */
int mig_change(const struct invocation *invocation, const struct mig_gpu *gpu,
    const struct mig_plan *plan, struct fault *fault);

/*
 * Does so for profiles that are still to be placed.
 *
 * index:  of the GPU, "0"
 * layout: profiles with a plus between, "3g.20gb+1g.5gb"
 *
 * Returns as mig_change, or as mig_query and mig_plan_make.
 */
int mig_change_layout(const struct invocation *invocation, struct gpu_set *set, const char *index,
    const char *layout, struct fault *fault);

#endif
