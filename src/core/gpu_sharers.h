/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a GPU as the interference model takes them (sharing/interference.h). */
#ifndef COLLOC_CORE_GPU_SHARERS_H
#define COLLOC_CORE_GPU_SHARERS_H

#include "core/view.h"
#include "sharing/interference.h"

enum { GPU_SHARERS_MAX = 32 }; /* chosen: with more tasks on a GPU nothing is predicted */

/* Sets a sharer from what is expected of a task. Unknown activity counts as the whole GPU;
 * fractions that are not known follow from SMACT. */
void gpu_sharer_set(struct sharer *sharer, const struct expectation *expect, enum sharing sharing,
    int thread_percent);

/* Sets a sharer for each resident of the GPU; one that is stopped does next to nothing. */
void gpu_sharers_list(const struct gpu_view *gpu, struct sharer *ret_sharers);

#endif
