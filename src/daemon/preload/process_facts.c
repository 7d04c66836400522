/* SPDX-License-Identifier: Apache-2.0 */
/* Which process of a task has the library, and what its page says of it: flags, and whether it is a
 * rank of NCCL. */
#include "daemon/preload/preload_manager.h"
#include "daemon/preload/preload_state.h"
#include "preload/page_orders.h"

struct preload_process *process_facts_find(
    const struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return preload_next_of_process(manager->listener, task, id, NULL);
}

bool preload_manager_knows(
    const struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return process_facts_find(manager, task, id);
}

bool preload_manager_has_no_ranks(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    const struct preload_process *process = process_facts_find(manager, task, id);
    return process && !page_is_in_communicator(process->page);
}

uint32_t preload_manager_flags(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    uint32_t flags = 0;
    struct preload_process *process = NULL;
    while ((process = preload_next_of_process(manager->listener, task, id, process)))
        flags |= atomic_load(&process->page->flags);
    return flags;
}

bool preload_manager_counts_collectives(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    uint32_t flags = preload_manager_flags(manager, task, id);
    return (flags & PRELOAD_SEES_COLLECTIVES) && !(flags & PRELOAD_OTHER_COLLECTIVES);
}
