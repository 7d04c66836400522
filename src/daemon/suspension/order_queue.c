/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of orders: whose turn it is, how an order waits, and how it ends.
 *
 * Turns: what cannot wait is first, then the queue's order. An order that is begun sends the other
 * orders of its user to the end, so each other user's first order is before them:
 *
 *     A1 A2 A3 B1 C1     A1 is begun:  B1 C1 A2 A3     B1 is begun:  C1 A2 A3
 *
 * An order that is with the driver is set aside, and is first when it has the answer
 * (order_driver.c).
 *
 * If the driver does not answer, or the GPU is full, an order is begun again some seconds later.
 * Meanwhile it waits in the queue, and orders of other tasks are carried out. So it is while an
 * order waits for a process of its task: a call that does not return delays no other task.
 *
 * Before a suspension a task with --signal gets its signal, and the order waits as long as the task
 * may take to save a checkpoint. A daemon that starts in that time sends the signal again.
 */
#include <stdlib.h>

#include "base/clamp.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/suspension/suspension_state.h"

/* ---- failures ---- */

static struct failure **find_failure(struct suspension *s, uint64_t task)
{
    struct failure **link = &s->failures;
    while (*link && (*link)->task != task)
        link = &(*link)->next;
    return link;
}

void suspension_forget_failure(struct suspension *s, uint64_t task)
{
    struct failure **link = find_failure(s, task), *found = *link;
    if (found)
        *link = found->next;
    free(found);
}

void suspension_note_failure(struct suspension *s, uint64_t task, const char *why)
{
    suspension_forget_failure(s, task);
    struct failure *failure = calloc(1, sizeof *failure);
    if (!failure)
        return;
    *failure = (struct failure){.next = s->failures, .task = task};
    snprintf(failure->why, sizeof failure->why, "%s", why);
    s->failures = failure;
}

const char *suspension_why_failed(const struct suspension *s, uint64_t task)
{
    for (const struct failure *failure = s->failures; failure; failure = failure->next)
        if (failure->task == task)
            return failure->why;
    return "";
}

/* ---- turns ---- */

static void answer_order(struct suspension *s, struct order *order, const char *why)
{
    struct api_request *asker = order->asker;
    order->asker = NULL;
    if (asker)
        s->parts.hooks.answer(s->parts.hooks.context, asker, order->task, why);
}

/* The state that the core gives the task while the order is carried out. */
static enum task_state state_of(enum order_kind kind)
{
    static const enum task_state states[] = {
        TASK_SUSPENDING, TASK_RESUMING, TASK_MOVING, TASK_SUSPENDED};
    return states[kind];
}

void suspension_free_order(struct order *order)
{
    free(order->run);
    free(order);
}

static void drop_first(struct suspension *s)
{
    struct order *order = s->orders;
    s->orders = order->next;
    answer_order(s, order, NULL);
    suspension_free_order(order);
}

static struct order **find_answered(struct suspension *s)
{
    struct order **link = &s->orders;
    while (*link && !suspension_is_answered(*link))
        link = &(*link)->next;
    return link;
}

/* The first one that does not wait. One that waits for its GPUs has them before those behind it. */
static struct order **find_due(struct suspension *s, bool is_urgent, bool *claims)
{
    uint64_t now_ms = uv_now(s->parts.loop);
    struct order **link = &s->orders;
    for (; *link; link = &(*link)->next) {
        bool is_due = !suspension_is_with_driver(*link) && (*link)->retry_at_ms <= now_ms;
        if (!is_due || (*link)->is_urgent != is_urgent)
            continue;
        if (suspension_may_go_on(s, *link, claims))
            break;
        suspension_claim_gpus(s, *link, claims);
    }
    return link;
}

/* The first order with an answer of the driver, or else the first urgent one, or else the first of
 * the others; it points to NULL when there is none. */
static struct order **find_next(struct suspension *s)
{
    struct order **found = find_answered(s);
    if (*found || !helper_pool_find(&s->helpers))
        return found;
    bool *claims = suspension_claims(s);
    found = find_due(s, true, claims);
    if (!*found)
        found = find_due(s, false, claims);
    free(claims);
    return found;
}

/* Appends the list without the user's orders, and then these. */
static void append_in_turn(struct order *first, struct order *list, uid_t uid)
{
    struct order *of_user = NULL, **end = &first->next, **user_end = &of_user;
    while (list) {
        struct order *order = list;
        struct order ***at = order->uid == uid ? &user_end : &end;
        list = order->next;
        **at = order;
        *at = &order->next;
    }
    *user_end = NULL;
    *end = of_user;
}

/* Moves the order whose turn it is to the front of the queue. Returns false when there is none. */
static bool bring_next_to_front(struct suspension *s)
{
    struct order **link = find_next(s), *order = *link;
    if (!order)
        return false;
    *link = order->next;
    append_in_turn(order, s->orders, order->uid);
    s->orders = order;
    return true;
}

static void on_order_timer(uv_timer_t *timer)
{
    suspension_begin_next(timer->data);
}

/* All orders of the queue wait for their retries, or for an answer of the driver, which begins the
 * next one. */
static void start_retry_timer(struct suspension *s)
{
    uint64_t now_ms = uv_now(s->parts.loop), earliest_ms = UINT64_MAX;
    for (const struct order *order = s->orders; order; order = order->next)
        if (order->retry_at_ms > now_ms && order->retry_at_ms < earliest_ms)
            earliest_ms = order->retry_at_ms;
    if (earliest_ms < UINT64_MAX)
        uv_timer_start(&s->timer, on_order_timer, earliest_ms - now_ms, 0);
}

/* A task gets no warning of repeated stops (time slots), and of stops whose cause cannot wait
 * (services, promises). */
static bool is_worth_a_warning(enum yield_reason reason)
{
    return reason != YIELD_TO_SLOT && !yield_is_for_time(reason);
}

/* Warns the task of its suspension, unless that has begun already. Returns whether the order waits
 * for the task. */
static bool warn_first(struct suspension *s, struct order *order, const struct task *task)
{
    if (order->is_warned || order->kind != ORDER_SUSPEND ||
        !is_worth_a_warning(task->run->yield.reason) || suspension_load_record(s, task))
        return false;
    order->is_warned = true;
    int64_t wait_us = attempts_warn(s->parts.attempts, task->id);
    if (!wait_us)
        return false;
    log_info("task %llu got its --signal: it is suspended in %lld s", (unsigned long long)task->id,
        (long long)(wait_us / SECOND_US));
    order->retry_at_ms = uv_now(s->parts.loop) + (uint64_t)(wait_us / MS_US);
    return true;
}

/* Orders of tasks that have meanwhile ended, or are in another state, are void. */
void suspension_begin_next(struct suspension *s)
{
    while (!s->is_closed && !(s->orders && s->orders->is_under_way)) {
        if (!bring_next_to_front(s)) {
            start_retry_timer(s);
            return;
        }
        struct order *order = s->orders;
        if (suspension_is_answered(order)) {
            order->is_under_way = true;
            suspension_take_answer(s);
            continue;
        }
        const struct task *task = suspension_find_task(s, order->task);
        if (!task || task->state != state_of(order->kind)) {
            drop_first(s);
            continue;
        }
        if (warn_first(s, order, task))
            continue;
        if (!order->started_us)
            order->started_us = clock_monotonic_us();
        order->is_under_way = true;
        s->client = helper_pool_find(&s->helpers);
        s->begin_order(s);
    }
}

/* A resumption takes nothing from another task. */
static bool is_urgent(const struct task *task, enum order_kind kind)
{
    enum yield_reason reason = task->run->yield.reason;
    if (kind == ORDER_RELOCATE)
        return true;
    return kind != ORDER_RESUME &&
           (reason == YIELD_TO_MEMORY || reason == YIELD_GPU_FAILING || yield_is_for_time(reason));
}

void suspension_add_order(struct suspension *s, uint64_t task, enum order_kind kind)
{
    const struct task *found = suspension_find_task(s, task);
    struct order **link = &s->orders;
    while (*link) {
        if ((*link)->task == task && (*link)->kind == kind)
            return;
        link = &(*link)->next;
    }
    *link = calloc(1, sizeof **link);
    if (!*link)
        driver_die_of_memory();
    **link = (struct order){.task = task,
        .uid = found ? found->uid : 0,
        .kind = kind,
        .is_urgent = found && is_urgent(found, kind)};
    suspension_begin_next(s);
}

/* ---- the end of an order ---- */

/* The event may leave an order for the same task: this one is out of the queue by then. */
static void finish_order(struct suspension *s, struct event *event, const char *why)
{
    struct order *order = s->orders;
    json_t *detail = why ? json_pack("{s:s}", "why", why) : NULL;
    s->orders = order->next;
    if (why)
        log_warning("task %llu: %s", (unsigned long long)order->task, why);
    if (why)
        suspension_note_failure(s, order->task, why);
    else
        suspension_forget_failure(s, order->task);
    if (suspension_find_task(s, order->task))
        driver_feed(s->parts.driver, event, detail);
    json_decref(detail);
    answer_order(s, order, why);
    suspension_free_order(order);
    suspension_begin_next(s);
}

void suspension_complete_order(struct suspension *s, enum event_kind kind)
{
    const struct order *order = s->orders;
    struct event event = driver_event(s->parts.driver, kind, order->task);
    event.yielded.bytes = suspension_record_bytes(&s->record);
    if (kind == EVENT_SUSPENDED && s->record.are_clients) {
        event.yielded.context_bytes = suspension_context_bytes(s);
        event.yielded.has_ranks = suspension_are_ranks(s);
    }
    event.yielded.took_us = clock_monotonic_us() - order->started_us;
    suspension_save_speed(s);
    suspension_report_speed(s);
    if (kind == EVENT_SUSPENDED)
        event.yielded.copy_bytes = suspension_near_bytes(s);
    if (kind != EVENT_SUSPENDED && kind != EVENT_RELOCATED) {
        suspension_set_gate(s, false);
        suspension_return_memory(s);
    }
    finish_order(s, &event, NULL);
}

void suspension_fail_order(
    struct suspension *s, enum suspension_failure failure, bool is_suspended, const char *why)
{
    struct event event = driver_event(s->parts.driver, EVENT_SUSPENSION_FAILED, s->orders->task);
    is_suspended &= s->orders->kind != ORDER_SUSPEND; /* the core's: it still holds its GPUs */
    event.suspension_failed.why = failure;
    event.suspension_failed.is_suspended = is_suspended;
    if (!is_suspended) { /* only the record has the memory limit from before */
        suspension_set_gate(s, false);
        suspension_return_memory(s);
        suspension_remove_record(s, s->orders->task);
    }
    finish_order(s, &event, why);
}

void suspension_drop_order(struct suspension *s)
{
    drop_first(s);
    suspension_begin_next(s);
}

void suspension_retry_later(struct suspension *s, uint64_t wait_ms)
{
    struct order *order = s->orders;
    struct order **end = &order->next;
    while (*end)
        end = &(*end)->next;
    order->is_under_way = false;
    order->retry_at_ms = uv_now(s->parts.loop) + wait_ms;
    s->orders = order->next ? order->next : order;
    if (order->next)
        *end = order;
    order->next = NULL;
    uv_timer_start(&s->timer, on_order_timer, 0, 0); /* not from here: many may be retried */
}

/* ---- waiting for the task's processes ---- */

/* Chosen: a synchronizing call of a training returns within a step. */
static const int64_t WAIT_AT_FRONT_US = 100 * MS_US;
/* Chosen: the longer it has waited, the less often it is asked: by an eighth of that time. */
static const uint64_t WAIT_MIN_MS = 50, WAIT_MAX_MS = 1000;
enum { WAIT_PART = 8 };

static void on_wait_timer(uv_timer_t *timer)
{
    struct suspension *s = timer->data;
    struct order *order = s->orders;
    void (*next_step)(struct suspension * s) = order->next_step;
    order->next_step = NULL;
    if (suspension_find_task(s, order->task))
        next_step(s);
    else
        suspension_drop_order(s);
}

void suspension_wait_for_task(struct suspension *s, uint64_t poll_ms, int64_t since_us,
    void (*next_step)(struct suspension *s))
{
    int64_t waited_us = clock_monotonic_us() - since_us;
    int64_t wait_ms = clamp_int64(waited_us / MS_US / WAIT_PART, WAIT_MIN_MS, WAIT_MAX_MS);
    s->orders->next_step = next_step;
    if (waited_us < WAIT_AT_FRONT_US)
        uv_timer_start(&s->timer, on_wait_timer, poll_ms, 0);
    else
        suspension_retry_later(s, (uint64_t)wait_ms);
}
