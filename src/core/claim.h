/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims: tasks for which a GPU is kept from others. A GPU has at most one of each kind.
 *
 *     EXCLUSIVE  a task has the GPU to itself, by its request or its policy
 *     DRAIN      the GPU becomes idle for the first recovering task
 *     CLOSED     a task on the GPU is being taken off, or its allocation waits, or got memory that
 *                no sample shows yet: what is free is not for others
 *     RETURN     a suspended task whose context has stayed there waits to be resumed there: no task
 *                of the queue starts there, suspended tasks may be resumed
 *     RECALL     the same of ranks that must be back in time: no other task comes there at all
 *     HEAD       the head of the main queue is predicted to start there; others may start where
 *                that does not delay it
 *
 * Claims are in the view, where policies read them. They follow from the state, so a restart loses
 * none for good. A new reason to keep a GPU from tasks is a kind here, a verdict (core/policy.h),
 * and a test of it in policy/conditions.c.
 */
#ifndef COLLOC_CORE_CLAIM_H
#define COLLOC_CORE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

enum claim_kind {
    CLAIM_EXCLUSIVE,
    CLAIM_DRAIN,
    CLAIM_CLOSED,
    CLAIM_RETURN,
    CLAIM_RECALL,
    CLAIM_HEAD,
    CLAIM_KINDS
};

/* Sets of kinds. */
enum {
    CLAIMS_NONE = 0,
    CLAIMS_DRAIN = 1 << CLAIM_DRAIN,
    CLAIMS_HEAD = 1 << CLAIM_HEAD,
    CLAIMS_RETURN = 1 << CLAIM_RETURN | 1 << CLAIM_RECALL,
    CLAIMS_LEAVING = 1 << CLAIM_DRAIN | 1 << CLAIM_CLOSED, /* its memory is for another task */
    CLAIMS_BARRING = CLAIMS_LEAVING | 1 << CLAIM_EXCLUSIVE | CLAIMS_RETURN, /* tasks may not come */
    CLAIMS_PASSING = CLAIMS_LEAVING | CLAIMS_RETURN |
                     1 << CLAIM_HEAD, /* end while residents stay */
};

/* Has a task a claim of one of these kinds? `claims`: of a GPU, the task of each kind, 0: none. A
 * pass asks it of each GPU: unrolled, with kinds that are constants, only their claims are read. */
static inline bool claims_any(const uint64_t claims[CLAIM_KINDS], unsigned kinds)
{
    uint64_t any = 0;
#pragma GCC unroll 8
    for (int kind = 0; kind < CLAIM_KINDS; kind++)
        any |= kinds >> kind & 1 ? claims[kind] : 0;
    return any != 0;
}

/* The task's claim of that kind ends, if it has it. */
static inline void claims_end(uint64_t claims[CLAIM_KINDS], enum claim_kind kind, uint64_t task)
{
    if (claims[kind] == task)
        claims[kind] = 0;
}

/* Drops the claims of these kinds. */
static inline void claims_drop(uint64_t claims[CLAIM_KINDS], unsigned kinds)
{
#pragma GCC unroll 8
    for (int kind = 0; kind < CLAIM_KINDS; kind++)
        if (kinds >> kind & 1)
            claims[kind] = 0;
}

#endif
