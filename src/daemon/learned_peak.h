/* SPDX-License-Identifier: Apache-2.0 */
/* What a task's peak says of the memory that its command takes. */
#ifndef COLLOC_DAEMON_LEARNED_PEAK_H
#define COLLOC_DAEMON_LEARNED_PEAK_H

#include "core/core.h"
#include "daemon/job.h"

/* May the peak be what a framework allocated at its start? The task's GPUs count as having equal
 * parts. `job`: with a known peak, on a known GPU. */
bool learned_peak_is_preallocated(
    const struct core *core, const struct task *task, const struct job *job);

/* Returns the task's peak so far on one of its GPUs; READING_NONE: not known, or preallocated. */
struct reading learned_peak(
    const struct core *core, const struct task *task, const struct job *job);

#endif
