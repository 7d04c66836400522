/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of the core wants its driver to do. */
#ifndef COLLOC_CORE_EFFECT_H
#define COLLOC_CORE_EFFECT_H

#include "core/event.h"

enum effect_kind {
    EFFECT_APPEND,  /* write `event`, a decision, to the log */
    EFFECT_START,   /* start `task` on its GPUs; answer with STARTED, or EXITED (FAILURE_LAUNCH) */
    EFFECT_KILL,    /* end `task`'s processes: SIGTERM, then SIGKILL; answer with EXITED */
    EFFECT_WAIT,    /* `task`, the first of its queue, now waits for another reason: core_explain */
    EFFECT_SUSPEND, /* take `task` off its GPUs; answer with SUSPENDED or SUSPENSION_FAILED */
    EFFECT_RESUME,  /* put it on its GPUs; answer with RESUMED or SUSPENSION_FAILED */
    EFFECT_MOVE,    /* to task->run->yield.to_gpus; answer with MOVED or SUSPENSION_FAILED */
    EFFECT_PAUSE,   /* freeze its processes; answer with SUSPENSION_FAILED if one runs on */
    EFFECT_CONTINUE, /* let frozen processes continue */
    EFFECT_RELOCATE, /* take its copy from run->yield.neighbour to the host, or, without one, its
                        context off its GPU; answer with RELOCATED or SUSPENSION_FAILED */
    EFFECT_GRANT_MEMORY, /* its allocation that waits is tried again */
    EFFECT_DENY_MEMORY,  /* its allocation that waits fails as it would have */
};

struct effect {
    enum effect_kind kind;
    uint64_t task;
    struct event event; /* of EFFECT_APPEND; its data is valid until the next step */
};

#endif
