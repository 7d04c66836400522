/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to a task's processes, by their pages (preload/page_orders.h): to close their gates, to
 * their carriers, and to ranks of NCCL. */
#include "base/log.h"
#include "daemon/preload/preload_manager.h"
#include "daemon/preload/preload_state.h"
#include "preload/rank_text.h"

enum preload_gate_answer preload_manager_set_gate(
    struct preload_manager *manager, uint64_t task, struct process_id id, bool is_closed)
{
    enum preload_gate_answer answer = manager->listener ? PRELOAD_GATE_AWAY : PRELOAD_GATE_NONE;
    struct preload_process *process = NULL;
    while ((process = preload_next_of_task(manager->listener, task, process))) {
        if (id.pid && !process_id_is(preload_peer_id(&process->peer), id))
            continue;
        page_set_gate(process->page, is_closed);
        answer = atomic_load(&process->page->in_flight) ? PRELOAD_GATE_BUSY : PRELOAD_GATE_CLEAR;
    }
    return answer;
}

/* Returns NULL when the process runs without the library. */
static struct preload_page *find_page(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    struct preload_process *process = process_facts_find(manager, task, id);
    return process ? process->page : NULL;
}

enum preload_carry_answer preload_manager_carry(
    struct preload_manager *manager, uint64_t task, struct process_id id, bool is_away)
{
    struct preload_process *process = process_facts_find(manager, task, id);
    if (!process)
        return PRELOAD_CARRIES_NOT;
    enum preload_carry_answer answer = page_carry(process->page, is_away);
    if (!is_away && answer == PRELOAD_CARRIES_DONE)
        room_pool_take_back(manager->rooms, process);
    return answer;
}

bool preload_manager_give_room(struct preload_manager *manager, uint64_t task, struct process_id id,
    enum preload_place place, uint64_t bytes, uint64_t offset, int fd)
{
    struct preload_process *process = process_facts_find(manager, task, id);
    if (!process || !page_can_use(process->page, place))
        return false;
    bool is_new = place != PRELOAD_PLACE_OWN || atomic_load(&process->page->carry_place) != place;
    if (is_new && !preload_give_room(process, place, bytes, offset, fd))
        return false;
    page_set_place(process->page, place);
    return true;
}

uint64_t preload_manager_room_bytes(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    const struct preload_process *process = process_facts_find(manager, task, id);
    return process ? room_pool_covers(manager->rooms, process) : 0;
}

bool preload_manager_lend_room(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    struct preload_process *process = process_facts_find(manager, task, id);
    return process && room_pool_lend(manager->rooms, process);
}

void preload_manager_limit_rooms(struct preload_manager *manager, int64_t idle_max_bytes)
{
    room_pool_limit(manager->rooms, idle_max_bytes > 0 ? (uint64_t)idle_max_bytes : 0);
}

struct room_totals preload_manager_rooms(const struct preload_manager *manager)
{
    return room_pool_totals(manager->rooms);
}

bool preload_manager_rooms_of_task(
    const struct preload_manager *manager, uint64_t task, struct room_of_task *ret_rooms)
{
    return room_pool_of_task(manager->rooms, task, ret_rooms);
}

enum preload_carry_answer preload_manager_relocate(
    struct preload_manager *manager, uint64_t task, struct process_id id, enum preload_place place)
{
    struct preload_page *page = find_page(manager, task, id);
    return page ? page_relocate(page, place) : PRELOAD_CARRIES_NOT;
}

enum preload_place preload_manager_lies(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    const struct preload_page *page = find_page(manager, task, id);
    return page ? page_lies(page) : PRELOAD_PLACE_OWN;
}

bool preload_manager_is_away(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    const struct preload_page *page = find_page(manager, task, id);
    uint32_t where = page ? atomic_load(&page->carry_state) : PRELOAD_CARRY_NONE;
    return where >= PRELOAD_CARRY_COPYING && where != PRELOAD_CARRY_RETURNING;
}

bool preload_manager_can_carry(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return page_can_carry(find_page(manager, task, id));
}

uint64_t preload_manager_carried_bytes(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    struct preload_page *page = find_page(manager, task, id);
    return page ? atomic_load(&page->carry_bytes) : 0;
}

bool preload_manager_explain_carrier(
    struct preload_manager *manager, uint64_t task, struct process_id id, char *text, size_t size)
{
    struct preload_process *process = NULL;
    if (id.pid)
        return page_explain_carrier(find_page(manager, task, id), id.pid, text, size);
    while ((process = preload_next_of_task(manager->listener, task, process)))
        if (page_explain_carrier(process->page, process->peer.pid, text, size))
            return true;
    return false;
}

void preload_manager_log_ranks(const struct preload_manager *manager, uint64_t task)
{
    char text[RANK_TEXT_SIZE];
    struct preload_process *process = NULL;
    while ((process = preload_next_of_task(manager->listener, task, process))) {
        rank_text_write(process->page, text, sizeof text);
        log_info(
            "task %llu: process %d: %s", (unsigned long long)task, (int)process->peer.pid, text);
    }
}

void carry_orders_heal(struct preload_process *process, const struct task *task)
{
    if (task && task->state == TASK_RUNNING)
        page_heal(process->page);
}

enum preload_hold_answer preload_manager_hold(struct preload_manager *manager, uint64_t task)
{
    struct preload_page *pages[PAGES_HELD_MAX];
    struct preload_process *process = NULL;
    size_t n = 0;
    while (n < PAGES_HELD_MAX && (process = preload_next_of_task(manager->listener, task, process)))
        pages[n++] = process->page;
    return pages_hold(pages, n);
}
