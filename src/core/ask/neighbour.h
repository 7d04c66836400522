/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory of one GPU for the copy of a task that gives way on another (docs/carrier.md): over
 * NVLink the copy takes a tenth of the time that it takes to host memory.
 *
 *     GPU 0: a and b take turns       GPU 1: c, which needs 20 of 80 GiB
 *     a is suspended: its 30 GiB lie on GPU 1, and its context stays on GPU 0
 *     d is submitted, which could start on GPU 1: a's copy goes to the host at once
 *
 * It is lent only while no task wants it, so none ever waits for it longer than for a copy.
 */
#ifndef COLLOC_CORE_ASK_NEIGHBOUR_H
#define COLLOC_CORE_ASK_NEIGHBOUR_H

#include "core/state/state.h"

/*
 * Finds the GPU whose free memory takes the copy of a task that is to be suspended.
 *
 * to_task: the task that it gives way to; 0: none is known
 *
 * Returns its index; -1: the copy goes to the host.
 */
int core_find_neighbour(struct core *core, const struct task *task, enum yield_reason reason,
    uint64_t to_task, int64_t now_us);

/*
 * Does a task want memory of the GPU: one that waits and may run there, one whose allocation waits
 * there, or one that is there and has not taken all that it needs?
 *
 * but: a task that does not count, since it starts elsewhere; 0: all count
 *
 * The tasks that wait are those at the first call in a pass: one that has started since may still
 * count, so that too little is lent rather than too much.
 */
bool core_is_memory_wanted(struct core *core, int gpu, uint64_t but);

#endif
