/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task's memory on a GPU, from its placement on. No other task is placed on the GPU until a
 * resident has settled, so that its memory is not given to another task.
 *
 *                 no memory seen                          memory seen
 *
 *     PLACED ------------------------------------> CONTEXT ----> RISING
 *       |  \                                        ^  |            |
 *       |   `-- reading 0 --> ABSENT ---------------'  |            |  has not grown for settle_us,
 *       |                       |    held off anew     |            |  or settle_max_us is over
 *       |  settle_max_us        |                      |            v
 *       |  is over              |                      |         SETTLED
 *       v                       v                      v
 *     PLACED_SETTLED -> 0 -> ABSENT_SETTLED         CONTEXT_SETTLED
 *              \                |                      ^
 *               \               `-> CONTEXT (anew)     |
 *                `-------------------------------------'
 *
 * "Anew": a task that was seen without memory (it was loading data) and takes its first is held off
 * for up to settle_max_us again. A task without any reading is not: its memory may have been there
 * all the time. From CONTEXT_SETTLED a task whose requirement is known becomes RISING when it has
 * taken half of that.
 */
#ifndef COLLOC_CORE_RESIDENCE_H
#define COLLOC_CORE_RESIDENCE_H

#include <stdbool.h>

enum residence {
    RESIDENCE_PLACED,          /* its memory is not known yet */
    RESIDENCE_ABSENT,          /* a reading showed no memory */
    RESIDENCE_PLACED_SETTLED,  /* as PLACED, after settle_max_us */
    RESIDENCE_ABSENT_SETTLED,  /* as ABSENT, after settle_max_us */
    RESIDENCE_CONTEXT,         /* it has memory: not yet more than a bare CUDA context */
    RESIDENCE_RISING,          /* it has more than a context */
    RESIDENCE_CONTEXT_SETTLED, /* as CONTEXT, after settle_max_us */
    RESIDENCE_SETTLED,         /* it had more than a context and has stopped growing */
};

/* Has it, or had it, memory on the GPU? */
static inline bool residence_has_appeared(enum residence residence)
{
    return residence >= RESIDENCE_CONTEXT;
}

/* Did it take more than a bare CUDA context? */
static inline bool residence_has_risen(enum residence residence)
{
    return residence == RESIDENCE_RISING || residence == RESIDENCE_SETTLED;
}

/* Are other tasks no longer held off for it? */
static inline bool residence_has_settled(enum residence residence)
{
    return residence == RESIDENCE_SETTLED || residence == RESIDENCE_CONTEXT_SETTLED ||
           residence == RESIDENCE_PLACED_SETTLED || residence == RESIDENCE_ABSENT_SETTLED;
}

#endif
