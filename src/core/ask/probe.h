/* SPDX-License-Identifier: Apache-2.0 */
/* May a probe (core/probe.h) measure how fast a promised task is alone? */
#ifndef COLLOC_CORE_ASK_PROBE_H
#define COLLOC_CORE_ASK_PROBE_H

#include "core/state/state.h"

/* The later ones outweigh the earlier ones. */
enum probe_kind {
    PROBE_NONE,      /* none is of use, or none is allowed here */
    PROBE_RUNS,      /* it is measured now */
    PROBE_DUE,       /* the tasks beside it may be paused now */
    PROBE_LATER,     /* from `at_us` on, if all stays as it is */
    PROBE_UNSETTLED, /* a task there is starting, stopped or ending, or gives way to no other now */
    PROBE_REFUSED,   /* `task`, beside it, is never paused for that */
    PROBE_UNFROZEN,  /* `task`, beside it, could not be paused, now or before */
    PROBE_EXTERNAL,  /* an external process is there, or may be: it is never alone */
    PROBE_SLOW_STEPS, /* its steps take too long for PROBE_MAX_US */
    PROBE_NO_STEPS,   /* no steps of it are known */
    PROBE_FAILED,     /* PROBE_TRIES have measured nothing */
};

struct probe_answer {
    enum probe_kind kind;
    uint64_t task;
    int64_t stop_us; /* of DUE and LATER: for how long the others are paused, at most */
    int64_t at_us;
};

/* Returns whether the task may be measured now, and if not, why. */
struct probe_answer core_find_probe(
    const struct core *core, const struct task *task, int64_t now_us);

/* Is the task paused so that another one can be measured alone? */
bool core_is_probed(const struct task *task);

/* When that probe ends at the latest; TIME_NEVER: the task is not paused for one. */
int64_t core_probe_end_us(const struct task *task);

/*
 * Has that probe ended: its time is over, the promised task has been measured, or is not alone any
 * more?
 *
 * task: one for which core_is_probed is true
 */
bool core_is_probe_over(const struct core *core, const struct task *task, int64_t now_us);

#endif
