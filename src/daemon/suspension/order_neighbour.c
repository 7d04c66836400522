/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies on a neighbour GPU (docs/carrier.md). The core has chosen the GPU; here each process of
 * the task is handed memory of it, before its gate is closed:
 *
 *     lend (helper) -> descriptor -> ROOM (process)     for each process
 *     gates, AWAY                                       as of clients of MPS: contexts stay
 *
 * and when a task wants that memory, the copies go to the host. What fails on the way there leaves
 * the task as it was: then it is suspended as if there were no neighbour.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/suspension/suspension_state.h"

/* The training may allocate between the loan and the order. Chosen: a few blocks. */
static const uint64_t SLACK_BYTES = 64 * MIB;

/* Chosen: a loan took milliseconds; the helper's first call initialises CUDA, which takes seconds.
 */
static const int64_t LEND_LIMIT_US = 30 * SECOND_US;

static const uint64_t RELOCATE_POLL_MS = 5;

static void lend_next(struct suspension *s);

static struct process_id process_at(const struct suspension *s, size_t i)
{
    return group_process_id(&s->record.processes[i]);
}

static bool is_away(const struct suspension *s, struct process_id id)
{
    return preload_manager_is_away(s->parts.preload, s->orders->task, id);
}

bool suspension_may_go_near(const struct suspension *s)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    bool may = task && task->run->yield.has_neighbour && s->orders->kind == ORDER_SUSPEND &&
               !s->orders->has_near_failed && suspension_can_carry(s);
    for (size_t i = 0; i < s->record.n_processes && may; i++)
        may = !is_away(s, process_at(s, i));
    return may;
}

/* ---- loans ---- */

static void take_loans_back(struct suspension *s)
{
    for (size_t i = 0; i < s->record.n_processes; i++)
        preload_manager_give_room(
            s->parts.preload, s->orders->task, process_at(s, i), PRELOAD_PLACE_OWN, 0, 0, -1);
}

void suspension_leave_neighbour(struct suspension *s, const char *why)
{
    log_info("task %llu: its copy goes to the host, not to a neighbour GPU: %s",
        (unsigned long long)s->orders->task, why);
    s->orders->is_near = false;
    s->orders->has_near_failed = true;
    take_loans_back(s);
    suspension_return_memory(s);
    suspension_remove_record(s, s->orders->task);
}

static void on_lent(void *context, const struct helper_reply *reply)
{
    struct suspension *s = context;
    int fd = reply->result == 0 ? helper_client_take_descriptor(s->client) : -1;
    struct process_id id = process_at(s, s->n_lent);
    bool is_given = fd >= 0 && preload_manager_give_room(s->parts.preload, s->orders->task, id,
                                   PRELOAD_PLACE_NEIGHBOUR, s->lent_bytes, 0, fd);
    if (fd >= 0)
        close(fd);
    if (!is_given) {
        s->on_lent(s, *reply->text ? reply->text : "a process cannot take the memory");
        return;
    }
    s->n_lent++;
    lend_next(s);
}

static void lend_next(struct suspension *s)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    while (s->n_lent < s->record.n_processes && is_away(s, process_at(s, s->n_lent)))
        s->n_lent++;
    if (!task || s->n_lent == s->record.n_processes) {
        s->orders->is_near = true;
        s->on_lent(s, NULL);
        return;
    }
    const struct gpu_view *gpu = &core_view(s->parts.core)->gpus[task->run->yield.neighbour];
    struct helper_request request = {.call = HELPER_LEND,
        .pid = s->record.processes[s->n_lent].pid,
        .born = s->record.processes[s->n_lent].born};
    s->lent_bytes = suspension_carried_bytes(s, s->n_lent) + SLACK_BYTES;
    request.bytes = (int64_t)s->lent_bytes;
    snprintf(request.gpu, sizeof request.gpu, "%.40s", gpu->id.uuid);
    helper_client_call(s->client, &request, LEND_LIMIT_US, on_lent, s);
}

bool suspension_lend_first(struct suspension *s, suspension_lent *next)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    if (s->orders->is_near || s->orders->has_near_failed || s->orders->kind != ORDER_SUSPEND ||
        !s->record.are_clients || !task || !task->run->yield.has_neighbour)
        return false;
    s->n_lent = 0;
    s->on_lent = next;
    lend_next(s);
    return true;
}

/* ---- to the host ---- */

/* The worst answer. One without a page, or whose copy is not there, has nothing to move. */
static enum preload_carry_answer ask_to_relocate(const struct suspension *s)
{
    enum preload_carry_answer worst = PRELOAD_CARRIES_DONE;
    for (size_t i = 0; i < s->record.n_processes; i++) {
        enum preload_carry_answer answer = preload_manager_relocate(
            s->parts.preload, s->orders->task, process_at(s, i), PRELOAD_PLACE_OWN);
        if (answer == PRELOAD_CARRIES_NOT)
            answer = PRELOAD_CARRIES_DONE;
        worst = answer > worst ? answer : worst;
    }
    return worst;
}

static void relocate_all(struct suspension *s)
{
    enum preload_carry_answer answer = ask_to_relocate(s);
    if (answer == PRELOAD_CARRIES_DONE)
        suspension_complete_order(s, EVENT_RELOCATED);
    else if (answer == PRELOAD_CARRIES_STILL)
        suspension_wait_for_task(s, RELOCATE_POLL_MS, s->orders->carry.begun_us, relocate_all);
    else
        suspension_fail_order(s, SUSPENSION_NO_MEMORY, true,
            "its copy stays on the neighbour GPU: it cannot be moved to the host");
}

void suspension_run_relocation(struct suspension *s)
{
    char why[SUSPENSION_WHY_SIZE];
    struct reading bytes = suspension_near_bytes(s);
    if (!suspension_has_host_room(s, reading_or(bytes, 0), why, sizeof why)) {
        suspension_fail_order(s, SUSPENSION_NO_MEMORY, true, why);
        return;
    }
    suspension_lend_memory(s);
    s->orders->carry.begun_us = clock_monotonic_us();
    relocate_all(s);
}
