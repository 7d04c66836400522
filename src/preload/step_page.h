/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a process, in the second half of its page (page.h, whose contract holds for it).
 * The process writes it, the daemon reads it. All zero: no step is known.
 */
#ifndef COLLOC_PRELOAD_STEP_PAGE_H
#define COLLOC_PRELOAD_STEP_PAGE_H

#include "preload/page.h"

enum { PRELOAD_STEPS_OFFSET = 2048 };

enum preload_step_source {
    PRELOAD_STEPS_NONE,   /* unknown */
    PRELOAD_STEPS_CALLS,  /* found in the sequence of its calls (step_counter.h) */
    PRELOAD_STEPS_MARKED, /* by the program itself: colloc_step */
};

struct preload_steps {
    _Atomic uint64_t count;    /* of steps whose time is known */
    _Atomic uint64_t timed_us; /* what they took, without breaks */
    _Atomic uint32_t unit;     /* another number: what a step is may have changed */
    _Atomic uint32_t source;   /* enum preload_step_source */
    _Atomic uint64_t marked;   /* steps that the program reported, with the first one */
};

_Static_assert(sizeof(struct preload_page) <= PRELOAD_STEPS_OFFSET, "before the steps");
_Static_assert(
    PRELOAD_STEPS_OFFSET + sizeof(struct preload_steps) <= PRELOAD_PAGE_SIZE, "in the page");

static inline struct preload_steps *preload_page_steps(struct preload_page *page)
{
    return (struct preload_steps *)(void *)((char *)page + PRELOAD_STEPS_OFFSET);
}

#endif
