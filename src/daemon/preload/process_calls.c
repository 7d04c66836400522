/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a process last called CUDA, as its page says at each poll: a task that makes no calls does
 * not use its GPUs, whatever its neighbours do there, and one that was suspended for that is wanted
 * again once a call waits at its gate.
 */
#include "base/clock.h"
#include "daemon/preload/preload_manager.h"
#include "daemon/preload/preload_state.h"

void process_calls_note(struct preload_process *process)
{
    struct known_process *known = process->data;
    struct preload_page *page = process->page;
    bool is_calling = atomic_load(&page->in_flight) || atomic_load(&page->at_gate) ||
                      atomic_load(&page->waiting);
    if (!known || !(atomic_load(&page->flags) & PRELOAD_COUNTS_CALLS))
        return;
    if (atomic_exchange(&page->called, 0) || is_calling)
        known->called_us = clock_monotonic_us();
}

void process_calls_wake(struct preload_manager *manager, const struct preload_process *process)
{
    const struct task *task = core_task(manager->parts.core, process->peer.task);
    struct event event = driver_event(manager->parts.driver, EVENT_WAKE, process->peer.task);
    if (task && task->run->yield.is_unused && atomic_load(&process->page->at_gate))
        driver_feed(manager->parts.driver, &event, NULL);
}

struct reading preload_manager_calls_idle_us(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    struct preload_process *process = NULL;
    while ((process = preload_next_of_process(manager->listener, task, id, process))) {
        const struct known_process *known = process->data;
        if (known && known->called_us)
            return reading_of((double)(clock_monotonic_us() - known->called_us));
    }
    return READING_NONE;
}
