/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that finds the counter in use goes on without it: a call that is missing in the sequence
 * costs little (step_counter.c), a thread that waits might cost a step. Reported steps are few, and
 * wait.
 */
#include "preload/step_watch.h"

#include <errno.h>
#include <time.h>

#include "preload/futex.h"

_Atomic(struct step_counter *) step_watch_counter;

static int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void step_watch_publish(struct process_state *state, struct preload_page *page)
{
    struct step_counter *counter = &state->steps.counter;
    struct preload_steps *shown = preload_page_steps(page);
    atomic_store_explicit(&shown->count, counter->steps, memory_order_relaxed);
    atomic_store_explicit(&shown->timed_us, (uint64_t)counter->timed_us, memory_order_relaxed);
    atomic_store_explicit(&shown->marked, counter->reported, memory_order_relaxed);
    atomic_store_explicit(&shown->unit, counter->unit, memory_order_relaxed);
    atomic_store_explicit(&shown->source,
        counter->reported       ? PRELOAD_STEPS_MARKED
        : counter->marks.n == 0 ? PRELOAD_STEPS_NONE
                                : PRELOAD_STEPS_CALLS,
        memory_order_release);
    atomic_store_explicit(&step_watch_counter, counter, memory_order_release);
}

void step_watch_note(uint32_t symbol)
{
    struct process_state *state = process_state_peek();
    uint32_t is_free = 0;
    if (!state || !atomic_compare_exchange_strong_explicit(
                      &state->steps.lock, &is_free, 1, memory_order_acquire, memory_order_relaxed))
        return;
    if (step_counter_note(&state->steps.counter, symbol, clock_us()))
        step_watch_publish(state, process_page(state));
    futex_unlock(&state->steps.lock);
}

int colloc_step(long steps)
{
    struct process_state *state = steps > 0 ? process_state_get() : NULL;
    if (!state)
        return -1;
    process_beat(state); /* which finds a daemon that was started again */
    if (!state->daemon)
        return -1;
    int error = errno;
    futex_lock(&state->steps.lock);
    step_counter_report(&state->steps.counter, (uint64_t)steps, clock_us());
    step_watch_publish(state, process_page(state));
    futex_unlock(&state->steps.lock);
    errno = error;
    return 0;
}
