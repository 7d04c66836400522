/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of tasks that wait for GPU memory, and the core, which decides about them
 * (core/pass/memory_answer.c): MEMORY_WAIT reports a thread to the core, and the core's answer is
 * sent on as RETRY or FAIL.
 *
 * The core knows one wait of a task; a task may have many threads. So one thread of each task is
 * reported to the core, the one that waits longest, and the next one when that has its answer:
 *
 *     thread 1  WAIT -> MEMORY_WAIT .. granted -> RETRY .. gone
 *     thread 2      WAIT .................. MEMORY_WAIT .. granted -> RETRY
 *
 * A thread is reported at the next poll of the GPUs: the driver has just refused memory that the
 * last poll showed as free. Each report is an event of the log, and a program cannot make more of
 * them than there are polls.
 *
 * While a task is suspended or paused its time limit does not run: BOUND is sent again, also to a
 * thread that tries: its try may fail after the task is resumed.
 *
 * After a restart the core has the waits from the log, but the threads have to reconnect first. A
 * wait whose thread does not reconnect has ended meanwhile.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/preload/preload_manager.h"
#include "daemon/preload/preload_state.h"
#include "preload/page_orders.h"
#include "preload/wait_rule.h"

/* Chosen: a thread that waits tries to connect once a second. */
enum { COMES_BACK_MS = 5000 };

/* A bound of a task that does not run is sent anew when a part of it has passed: a frozen process
 * does not read. */
enum { RENEWALS_PER_BOUND = 4 };

static const struct task *task_of(
    const struct preload_manager *manager, const struct preload_waiter *waiter)
{
    return core_task(manager->parts.core, waiter->peer.task);
}

/* ---- the bound ---- */

static uint64_t now_ms(const struct preload_manager *manager)
{
    return uv_now(manager->parts.loop);
}

/* Of the time only. */
static struct wait_case bounds_of(
    const struct preload_manager *manager, const struct preload_waiter *waiter)
{
    const struct config *config = manager->parts.config;
    const struct preload_process *process = preload_process_of(manager->listener, waiter);
    bool is_rank = process && page_is_rank(process->page);
    return (struct wait_case){.bound_ms = (uint64_t)(config->memory_wait_us / MS_US),
        .ranks_ms = is_rank ? (uint64_t)(config->core.ranks_away_us / MS_US) : 0};
}

static uint64_t bound_ms(const struct preload_manager *manager, const struct preload_waiter *waiter)
{
    const struct wait_case bounds = bounds_of(manager, waiter);
    return wait_rule_bound_ms(&bounds);
}

static void send_bound(struct preload_manager *manager, struct preload_waiter *waiter)
{
    waiter->bound_at_ms = now_ms(manager);
    preload_answer(waiter, PRELOAD_BOUND, bound_ms(manager, waiter));
}

static void renew_bound(struct preload_manager *manager, struct preload_waiter *waiter)
{
    const struct task *task = task_of(manager, waiter);
    uint64_t passed_ms = now_ms(manager) - waiter->bound_at_ms;
    if (task && task->run->yield.since_us &&
        passed_ms >= bound_ms(manager, waiter) / RENEWALS_PER_BOUND)
        send_bound(manager, waiter);
}

static const char *why_fails(
    const struct preload_manager *manager, const struct preload_waiter *waiter)
{
    const struct task *task = task_of(manager, waiter);
    bool is_client = task && task->run->share.sharing == SHARING_MPS;
    struct wait_case one = bounds_of(manager, waiter);
    one.bytes = waiter->bytes;
    one.held_bytes = waiter->held_bytes;
    one.limit_bytes = is_client ? (uint64_t)task->run->share.mem_limit_bytes : 0;
    one.waited_ms = now_ms(manager) - waiter->bound_at_ms;
    one.retries = waiter->retries;
    one.is_ending = !task || task->ending || (uint32_t)task->attempts != waiter->peer.attempt;
    return wait_rule_why_fails(&one);
}

/* ---- to the core ---- */

/* The thread of the task that the core decides about; NULL: there is none. */
static struct preload_waiter *find_reported(struct preload_manager *manager, uint64_t task)
{
    struct preload_waiter *waiter = NULL;
    while ((waiter = preload_next_waiter(manager->listener, waiter)))
        if (waiter->is_reported && waiter->peer.task == task)
            return waiter;
    return NULL;
}

static bool may_report(struct preload_manager *manager, const struct preload_waiter *waiter)
{
    return waiter->is_asking && !waiter->is_reported && !find_reported(manager, waiter->peer.task);
}

static const char *gpu_label(
    const struct preload_manager *manager, const struct preload_waiter *waiter)
{
    const struct cluster_view *view = core_view(manager->parts.core);
    for (int i = 0; i < view->n_gpus; i++)
        if (preload_uuid_is(view->gpus[i].id.uuid, waiter->gpu_uuid))
            return view->gpus[i].id.label;
    return "unknown";
}

/* Once it is reported: a program may connect and leave thousands of times a second. */
static void log_wait(const struct preload_manager *manager, struct preload_waiter *waiter)
{
    char size[32];
    if (waiter->is_logged)
        return;
    waiter->is_logged = true;
    log_info("task %llu: process %d waits for %s of memory of GPU %s",
        (unsigned long long)waiter->peer.task, (int)waiter->peer.pid,
        format_size((int64_t)waiter->bytes, size, sizeof size), gpu_label(manager, waiter));
}

/* The core refuses it before the task is known to run: it is reported later. */
static void report_wait(struct preload_manager *manager, struct preload_waiter *waiter)
{
    struct event event = driver_event(manager->parts.driver, EVENT_MEMORY_WAIT, waiter->peer.task);
    event.memory_wait.bytes = waiter->bytes ? (int64_t)waiter->bytes : 1;
    event.memory_wait.is_again = waiter->retries > 0;
    waiter->is_reported = true;
    log_wait(manager, waiter);
    if (driver_feed(manager->parts.driver, &event, NULL) != 0)
        waiter->is_reported = false;
}

static void end_wait(struct preload_manager *manager, uint64_t task)
{
    struct event event = driver_event(manager->parts.driver, EVENT_MEMORY_WAIT_END, task);
    driver_feed(manager->parts.driver, &event, NULL);
}

static void withdraw_wait(struct preload_manager *manager, struct preload_waiter *waiter)
{
    if (!waiter->is_reported)
        return;
    waiter->is_reported = false;
    end_wait(manager, waiter->peer.task);
}

/* ---- answers ---- */

static void fail_wait(
    struct preload_manager *manager, struct preload_waiter *waiter, const char *why)
{
    if (waiter->is_logged || !manager->has_logged)
        log_info("task %llu: process %d does not get the memory: %s",
            (unsigned long long)waiter->peer.task, (int)waiter->peer.pid, why);
    manager->has_logged = true;
    withdraw_wait(manager, waiter);
    preload_answer(waiter, PRELOAD_FAIL, 0);
}

/* A soft cap: the memory is free, so the process may have it. */
static void lift_cap(struct preload_manager *manager, const struct preload_waiter *waiter)
{
    const struct preload_process *process = preload_process_of(manager->listener, waiter);
    if (process && process->page->cap_bytes)
        process->page->cap_bytes = waiter->held_bytes + waiter->bytes;
}

void preload_manager_answer_memory(struct preload_manager *manager, uint64_t task, bool is_granted)
{
    struct preload_waiter *waiter = find_reported(manager, task);
    if (!waiter)
        return;
    waiter->is_reported = false;
    if (!is_granted) {
        fail_wait(manager, waiter, "its GPU has too little, and no other task can give way");
        return;
    }
    if (waiter->reason == PRELOAD_OVER_CAP)
        lift_cap(manager, waiter);
    preload_answer(waiter, PRELOAD_RETRY, 0);
}

/* ---- threads come and go ---- */

void memory_waits_add(struct preload_manager *manager, struct preload_waiter *waiter)
{
    if (waiter->retries == 0)
        send_bound(manager, waiter);
    const char *why = why_fails(manager, waiter);
    if (why)
        fail_wait(manager, waiter, why);
}

void memory_waits_remove(struct preload_manager *manager, struct preload_waiter *waiter)
{
    withdraw_wait(manager, waiter);
    if (!waiter->is_logged)
        return;
    log_info("task %llu: process %d goes on after %.1f s", (unsigned long long)waiter->peer.task,
        (int)waiter->peer.pid, (double)(now_ms(manager) - waiter->since_ms) / 1e3);
}

/* ---- at each poll ---- */

static void end_lost_waits(struct preload_manager *manager)
{
    const struct core *core = manager->parts.core;
    if (manager->has_ended_waits || now_ms(manager) - manager->opened_ms < COMES_BACK_MS)
        return;
    manager->has_ended_waits = true;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        if (task->run->memory_wait.is_unconfirmed)
            end_wait(manager, task->id);
}

/* A wait that was reported before the task's attempt was adopted has to be reported again. */
static void check_report(struct preload_manager *manager, struct preload_waiter *waiter)
{
    const struct task *task = task_of(manager, waiter);
    if (waiter->is_reported && task && task->run->memory_wait.is_unconfirmed)
        waiter->is_reported = false;
}

void memory_waits_poll(struct preload_manager *manager)
{
    struct preload_waiter *waiter = NULL;
    end_lost_waits(manager);
    manager->has_logged = false;
    while ((waiter = preload_next_waiter(manager->listener, waiter))) {
        renew_bound(manager, waiter);
        check_report(manager, waiter);
        const char *why = waiter->is_asking ? why_fails(manager, waiter) : NULL;
        if (why)
            fail_wait(manager, waiter, why);
        else if (may_report(manager, waiter))
            report_wait(manager, waiter);
    }
}
