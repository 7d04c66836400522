/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of this process: its calls are given to the step counter, what that finds to its page;
 * and programs report steps of theirs (docs/steps.md). */
#ifndef COLLOC_PRELOAD_STEP_WATCH_H
#define COLLOC_PRELOAD_STEP_WATCH_H

#include "preload/process_state.h"
#include "preload/step_counter.h"

/* Of this process; NULL until its first page. A forked child finds its parent's, cleared. */
extern _Atomic(struct step_counter *) step_watch_counter __attribute__((visibility("hidden")));

/* The slow part of step_watch. */
void step_watch_note(uint32_t symbol);

/* The program makes this call of the driver. A few nanoseconds. `handle`: as for step_symbol. */
static inline void step_watch(enum step_call call, uint64_t handle)
{
    struct step_counter *counter = atomic_load_explicit(&step_watch_counter, memory_order_acquire);
    uint32_t symbol = step_symbol(call, handle);
    if (counter && step_counter_is_due(counter, symbol))
        step_watch_note(symbol);
}

/* A new page has to show what the old one did; with the first one the calls are watched. */
void step_watch_publish(struct process_state *state, struct preload_page *page);

/*
 * What a program calls (by dlsym) when it has done `steps` more steps. From then on its calls are
 * not watched.
 *
 * Returns 0; -1: there is no daemon, or no number of steps above 0.
 */
int colloc_step(long steps);

#endif
