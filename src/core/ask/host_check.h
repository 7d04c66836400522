/* SPDX-License-Identifier: Apache-2.0 */
/* Do CPUs and main memory suffice for a task? */
#ifndef COLLOC_CORE_ASK_HOST_CHECK_H
#define COLLOC_CORE_ASK_HOST_CHECK_H

#include "core/state/state.h"

/* Does the server have the task's other requirements besides GPUs? Returns VERDICT_FITS,
 * VERDICT_HOST_CPUS or VERDICT_HOST_MEMORY. */
struct verdict core_check_host(const struct core *core, const struct task *task);

/* Does the task wait because the head would lack CPUs or main memory once it has its part? */
bool core_leaves_host_to(const struct core *core, const struct task *task, const struct task *head);

/* The same, and a task of the main queue leaves enough for the first recovering one. */
struct verdict core_check_host_turn(const struct core *core, const struct task *task);

/* Can the server ever have it? Returns 0; -EINVAL with the reason in the fault. */
int core_check_host_request(
    const struct core *core, const struct host_resources *wanted, struct fault *fault);

#endif
