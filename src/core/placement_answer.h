/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to the question where a task may be placed: GPUs, or what stands against each. */
#ifndef COLLOC_CORE_PLACEMENT_ANSWER_H
#define COLLOC_CORE_PLACEMENT_ANSWER_H

#include "core/policy.h"

struct placement {
    int *gpus;                /* of PLACE_NOW: as many as the task requests */
    struct verdict *verdicts; /* of PLACE_WAIT: on each GPU of the view */
    uint64_t *set_aside;      /* for each GPU: what keeps it from the task; 0: nothing */
    bool any_set_aside;       /* otherwise `set_aside` is not set */
};

/* Makes room for the answer on that many GPUs. Returns 0 or -ENOMEM. */
int placement_reserve(struct placement *placement, int n_gpus);

void placement_fini(struct placement *placement);

/* What keeps each GPU from the task; NULL: nothing keeps any. */
static inline const uint64_t *placement_aside(const struct placement *placement)
{
    return placement->any_set_aside ? placement->set_aside : NULL;
}

/* Is the GPU kept from the task, by a reservation in advance or as one closed for the try? */
static inline bool placement_sets_aside(const struct placement *placement, int gpu)
{
    return placement->any_set_aside && placement->set_aside[gpu];
}

#endif
