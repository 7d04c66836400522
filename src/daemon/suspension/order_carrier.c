/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carriers of a task's processes (docs/carrier.md), in an order: all of them take the memory of
 * their process away, or bring it back, and then the order goes on. Their answers are in pages, so
 * they are asked every few milliseconds, and less often when they take long: a carrier waits for
 * the program's calls in flight.
 */
#include "checkpoint/order_limits.h"
#include "daemon/suspension/suspension_state.h"

static const uint64_t CARRY_POLL_MS = 2; /* chosen: a carrier needs 60 ms for a GiB */

static int64_t limit_us(const struct suspension *s)
{
    return carry_limit_us(reading_or(suspension_record_bytes(&s->record), 0));
}

/* The worst answer; one that cannot be carried has nothing to bring back. */
static enum preload_carry_answer ask_all(const struct suspension *s)
{
    bool is_away = s->orders->carry.is_away;
    enum preload_carry_answer worst = PRELOAD_CARRIES_DONE;
    for (size_t i = 0; i < s->record.n_processes; i++) {
        enum preload_carry_answer answer = preload_manager_carry(
            s->parts.preload, s->orders->task, group_process_id(&s->record.processes[i]), is_away);
        if (answer == PRELOAD_CARRIES_NOT && !is_away)
            answer = PRELOAD_CARRIES_DONE;
        worst = answer > worst ? answer : worst;
    }
    return worst;
}

/* Until the first one copies they wait for the program's calls and kernels, which is no cost. */
static void note_copying(struct suspension *s)
{
    struct order *order = s->orders;
    bool is_copying = !order->carry.is_away;
    for (size_t i = 0; i < s->record.n_processes && !is_copying; i++)
        is_copying = preload_manager_is_away(
            s->parts.preload, order->task, group_process_id(&s->record.processes[i]));
    if (!is_copying)
        order->carry.copying_us = clock_monotonic_us();
}

static void ask_carriers(struct suspension *s)
{
    struct order *order = s->orders;
    note_copying(s);
    enum preload_carry_answer answer = ask_all(s);
    if (answer == PRELOAD_CARRIES_STILL &&
        clock_monotonic_us() - order->carry.begun_us < limit_us(s))
        suspension_wait_for_task(s, CARRY_POLL_MS, order->carry.begun_us, ask_carriers);
    else
        order->carry.next(s, answer);
}

/* Rooms may have come or gone since the facts were gathered: what is not in one is lent to the
 * task's cgroup. */
static void choose_places(struct suspension *s)
{
    uint64_t task = s->orders->task;
    for (size_t i = 0; i < s->record.n_processes; i++) {
        struct process_id id = group_process_id(&s->record.processes[i]);
        if (!preload_manager_lend_room(s->parts.preload, task, id))
            preload_manager_give_room(s->parts.preload, task, id, PRELOAD_PLACE_OWN, 0, 0, -1);
    }
    suspension_lend_memory(s);
}

bool suspension_can_carry(const struct suspension *s)
{
    bool can = s->record.n_processes > 0;
    for (size_t i = 0; i < s->record.n_processes && can; i++)
        can = preload_manager_can_carry(
            s->parts.preload, s->orders->task, group_process_id(&s->record.processes[i]));
    return can;
}

void suspension_carry(struct suspension *s, bool is_away, suspension_carried *next)
{
    if (is_away && !s->orders->is_near)
        choose_places(s);
    s->orders->carry.is_away = is_away;
    s->orders->carry.next = next;
    s->orders->carry.begun_us = s->orders->carry.copying_us = clock_monotonic_us();
    ask_carriers(s);
}

void suspension_learn_carry(struct suspension *s, enum copy_way way)
{
    const struct order *order = s->orders;
    const struct task *task = suspension_find_task(s, order->task);
    if (!task || order->retries > 0 || order->is_found)
        return; /* some of it may have been there before */
    const char *uuid = task->n_gpus == 1 ? core_view(s->parts.core)->gpus[task->gpus[0]].id.uuid
                                         : NULL;
    copy_speed_learn(&s->speed, uuid, way,
        (int64_t)reading_or(suspension_record_bytes(&s->record), 0),
        clock_monotonic_us() - order->carry.copying_us);
}

enum carrier_use suspension_ask_carrier(
    const struct suspension *s, const struct task *task, char *ret_why, size_t size)
{
    int n = 0, n_carried = 0;
    for (int i = 0; i < task->n_gpus && task->state == TASK_RUNNING; i++) {
        const struct gpu_view *gpu = &core_view(s->parts.core)->gpus[task->gpus[i]];
        const struct resident *resident = gpu_view_resident(gpu, task->id);
        n += resident->hooked + resident->unhooked;
        n_carried += resident->carried;
    }
    if (!s->parts.config->carrier || n == 0)
        return CARRIER_UNKNOWN;
    if (n_carried == n)
        return CARRIER_CAN;
    if (!preload_manager_explain_carrier(
            s->parts.preload, task->id, (struct process_id){0}, ret_why, size))
        snprintf(ret_why, size, "a process of it runs without the preloaded library");
    return CARRIER_CANNOT;
}
