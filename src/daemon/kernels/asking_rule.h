/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which GPU cuDNN may be asked: its context takes memory, and a little time of the tasks there.
 */
#ifndef COLLOC_DAEMON_KERNELS_ASKING_RULE_H
#define COLLOC_DAEMON_KERNELS_ASKING_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/view.h"

/*
 * May cuDNN be asked on the GPU?
 *
 * needed_bytes: of its memory
 * now_us:       of the core's clock
 * ret_why:      if not: the reason, for people
 *
 * Contract: never beside a task that has the GPU to itself or that a speed was promised, nor beside
 * a service; never where the GPU is kept for a task; only in memory that is free, that no task
 * there is known to take later, by a sample that is not old.
 */
bool asking_is_allowed(const struct gpu_view *gpu, const struct conditions *conditions,
    int64_t needed_bytes, int64_t now_us, const char **ret_why);

/*
 * Chooses among the GPUs of a kind: the one with the fewest tasks, of these the one with the most
 * free memory.
 *
 * Returns its index in the view; or -1, with the reason in ret_why.
 */
int asking_choose(const struct cluster_view *view, const char *kind,
    const struct conditions *conditions, int64_t needed_bytes, int64_t now_us,
    const char **ret_why);

#endif
