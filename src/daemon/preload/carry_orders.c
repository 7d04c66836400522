/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders to the carriers of tasks' processes (preload/carrier.h), by their pages. An order is one
 * word: a serial number and a goal. It stands in the page until another goal is wanted, so that
 * asking again and again is the same as asking once.
 */
#include "daemon/preload/preload_state.h"
#include "preload/futex.h"

static void give_order(struct preload_page *page, enum preload_carry_goal goal)
{
    uint32_t serial = atomic_load(&page->carry_order) & ~(uint32_t)PRELOAD_CARRY_GOAL_MASK;
    atomic_store(&page->carry_order, serial + PRELOAD_CARRY_SERIAL + goal);
    futex_wake_all(&page->carry_order);
}

/* What the page says may be anything; each word is read once. */
static enum preload_carry_answer carry_page(struct preload_page *page, bool is_away)
{
    enum preload_carry_goal goal = is_away ? PRELOAD_CARRY_AWAY : PRELOAD_CARRY_HERE;
    uint32_t order = atomic_load(&page->carry_order), done = atomic_load(&page->carry_done);
    uint32_t where = atomic_load(&page->carry_state), why = atomic_load(&page->carry_why);
    bool is_ordered = (order & PRELOAD_CARRY_GOAL_MASK) == goal;
    if (where == PRELOAD_CARRY_NONE || where > PRELOAD_CARRY_LOST)
        return PRELOAD_CARRIES_NOT;
    if (where == PRELOAD_CARRY_LOST)
        return PRELOAD_CARRIES_LOST;
    if (is_away && !is_ordered && where == PRELOAD_CARRY_IS_HERE && why != PRELOAD_CARRY_CAN)
        return PRELOAD_CARRIES_NOT;
    if (!is_ordered) {
        give_order(page, goal);
        where = atomic_load(&page->carry_state);
    }
    /* It has not begun to copy, and reads the order before it does: a call of the program or a
     * kernel may keep it waiting for ever. */
    if (!is_away && (where == PRELOAD_CARRY_WAITING || where == PRELOAD_CARRY_IS_HERE))
        return PRELOAD_CARRIES_DONE;
    if (!is_ordered)
        return PRELOAD_CARRIES_STILL;
    if (done != order)
        return PRELOAD_CARRIES_STILL;
    if (where == (is_away ? PRELOAD_CARRY_IS_AWAY : PRELOAD_CARRY_IS_HERE))
        return PRELOAD_CARRIES_DONE;
    give_order(page, PRELOAD_CARRY_KEEP); /* the next time it is tried again */
    return PRELOAD_CARRIES_FAILED;
}

/* Returns NULL when the process runs without the library. */
static struct preload_page *find_page(struct preload_manager *manager, uint64_t task, pid_t pid)
{
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process)))
        if (process->peer.task == task && process->peer.pid == pid)
            return process->page;
    return NULL;
}

enum preload_carry_answer preload_manager_carry(
    struct preload_manager *manager, uint64_t task, pid_t pid, bool is_away)
{
    struct preload_page *page = find_page(manager, task, pid);
    return page ? carry_page(page, is_away) : PRELOAD_CARRIES_NOT;
}

bool preload_manager_can_carry(struct preload_manager *manager, uint64_t task, pid_t pid)
{
    struct preload_page *page = find_page(manager, task, pid);
    return page && atomic_load(&page->carry_state) == PRELOAD_CARRY_IS_HERE &&
           atomic_load(&page->carry_why) == PRELOAD_CARRY_CAN;
}

uint64_t preload_manager_carried_bytes(struct preload_manager *manager, uint64_t task, pid_t pid)
{
    struct preload_page *page = find_page(manager, task, pid);
    return page ? atomic_load(&page->carry_bytes) : 0;
}

const char *preload_manager_why_not_carried(
    struct preload_manager *manager, uint64_t task, pid_t pid)
{
    static const char *const reasons[PRELOAD_CARRY_WHYS] = {
        [PRELOAD_CARRY_CAN] = "it has no memory that can be carried yet",
        [PRELOAD_CARRY_IS_OFF] = "its carrier is off",
        [PRELOAD_CARRY_NO_MAPPING] = "its GPU or driver cannot map memory",
        [PRELOAD_CARRY_SEVERAL_GPUS] = "several GPUs are visible to it",
        [PRELOAD_CARRY_MANAGED] = "it uses managed memory",
        [PRELOAD_CARRY_SHARED] = "it shares GPU memory with another process",
        [PRELOAD_CARRY_CONTEXTS] = "it has more than one CUDA context",
        [PRELOAD_CARRY_OTHER_MEMORY] = "most of its memory is in pools or mapped by itself",
        [PRELOAD_CARRY_LINKED] = "one of its libraries is linked with the driver",
        [PRELOAD_CARRY_CAPTURES] = "a stream is being captured",
        [PRELOAD_CARRY_GATE_OPEN] = "its gate was open",
        [PRELOAD_CARRY_CALLS] = "a call of it, or its work on the GPU, did not end",
        [PRELOAD_CARRY_NO_HOST_MEMORY] = "there is no host memory for its buffers or its copy",
        [PRELOAD_CARRY_NO_GPU_MEMORY] = "its GPU has too little free memory",
        [PRELOAD_CARRY_DRIVER] = "a call of the driver failed"};
    struct preload_page *page = find_page(manager, task, pid);
    uint32_t why = page ? atomic_load(&page->carry_why) : 0;
    if (page)
        return why < PRELOAD_CARRY_WHYS ? reasons[why] : reasons[PRELOAD_CARRY_DRIVER];
    return "it runs without the preloaded library";
}

bool preload_manager_explain_carrier(
    struct preload_manager *manager, uint64_t task, char *text, size_t size)
{
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process))) {
        pid_t pid = process->peer.pid;
        if (process->peer.task != task || preload_manager_can_carry(manager, task, pid))
            continue;
        snprintf(text, size, "process %d: %s", (int)pid,
            preload_manager_why_not_carried(manager, task, pid));
        return true;
    }
    return false;
}

/* A daemon ended in the middle of an order that the next one did not find: the library keeps the
 * gate of a new page closed while the memory is not here. No other gate of a task that runs is
 * closed, and without an order the library begins nothing. */
void carry_orders_heal(struct preload_process *process, const struct task *task)
{
    struct preload_page *page = process->page;
    uint32_t where = atomic_load(&page->carry_state);
    if (!task || task->state != TASK_RUNNING)
        return;
    if (where == PRELOAD_CARRY_IS_AWAY)
        carry_page(page, false);
    bool is_idle = atomic_load(&page->carry_order) == atomic_load(&page->carry_done);
    if (where == PRELOAD_CARRY_IS_HERE && is_idle && atomic_load(&page->gate))
        preload_set_page_gate(page, false);
}
