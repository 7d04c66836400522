/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The orders of the core, and the steps of each:
 *
 *     suspend   poll the GPUs -> inspect each process -> may it be? -> record -> group SUSPENDED
 *               -> SUSPENDED
 *     move      the same -> record says resuming -> group RUNNING elsewhere -> MOVED
 *     resume    record -> group RUNNING -> RESUMED
 *
 * If a record exists already, a killed daemon had begun this order, which is continued. The states
 * of the processes show its progress (checkpoint/process_group.h).
 *
 *     order_queue.c        whose turn it is; the end of an order
 *     order_facts.c        what decides whether a task may be suspended
 *     order_groups.c       suspends and resumes the processes; order_carrier.c has their carriers
 *     order_driver.c       the calls of the driver, for tasks on several GPUs at a time
 *     order_neighbour.c    copies on another GPU
 *     order_pages.c        what the preloaded library says of the processes
 *     memory_loan.c        the memory limit of the task's cgroup meanwhile
 */
#include "daemon/suspension/suspension.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/suspension/suspension_state.h"
#include "exec/cgroup.h"
#include "exec/container_slice.h"
#include "exec/tree.h"

/* ---- orders ---- */

static void begin_order(struct suspension *s)
{
    struct order *order = s->orders;
    const struct task *task = suspension_find_task(s, order->task);
    void (*next_step)(struct suspension * s) = order->next_step;
    order->next_step = NULL;
    s->awaited_poll = 0;
    s->is_without_library = s->is_secure = s->is_not_known = false;
    if (suspension_load_record(s, task)) {
        order->is_found |= !next_step && !order->held_us && !order->gate_closed_us;
        if (next_step)
            next_step(s);
        else if (order->kind == ORDER_RELOCATE)
            task->run->yield.has_neighbour ? suspension_run_relocation(s)
                                           : suspension_take_context(s);
        else if (order->kind == ORDER_RESUME || s->record.is_resuming)
            suspension_run_resumption(s);
        else
            suspension_run_suspension(s);
        return;
    }
    if (order->kind == ORDER_RESUME || order->kind == ORDER_RELOCATE) {
        suspension_fail_order(s, SUSPENSION_LOST, true, "the record of its processes is missing");
        return;
    }
    s->awaited_poll = gpus_poll_closely(s->parts.gpus);
    if (!s->awaited_poll)
        suspension_gather_facts(s, suspension_decide);
}

void suspension_suspend(struct suspension *s, uint64_t task)
{
    suspension_add_order(s, task, ORDER_SUSPEND);
}

void suspension_resume(struct suspension *s, uint64_t task)
{
    suspension_add_order(s, task, ORDER_RESUME);
}

void suspension_move(struct suspension *s, uint64_t task)
{
    suspension_add_order(s, task, ORDER_MOVE);
}

void suspension_relocate(struct suspension *s, uint64_t task)
{
    suspension_add_order(s, task, ORDER_RELOCATE);
}

void suspension_polled(struct suspension *s, int64_t poll)
{
    suspension_limit_rooms(s);
    if (!s->awaited_poll || poll < s->awaited_poll)
        return;
    s->awaited_poll = 0;
    if (suspension_find_task(s, s->orders->task))
        suspension_gather_facts(s, suspension_decide);
    else
        suspension_drop_order(s);
}

void suspension_task_ended(struct suspension *s, uint64_t task)
{
    suspension_forget_failure(s, task);
    suspension_remove_record(s, task);
}

bool suspension_answer_later(struct suspension *s, uint64_t task, struct api_request *request)
{
    for (struct order *order = s->orders; order; order = order->next) {
        if (order->task == task && !order->asker) {
            order->asker = request;
            return true;
        }
    }
    return false;
}

/* ---- pause ---- */

/* Containers have a cgroup of their own. Returns 0 or -errno. */
static int set_frozen(struct suspension *s, uint64_t task, bool is_frozen)
{
    char cgroup[CGROUP_PATH_SIZE], slice[CGROUP_PATH_SIZE];
    pid_t shim = attempts_find_shim(s->parts.attempts, task);
    bool has_cgroup = attempts_find_cgroup(s->parts.attempts, task, cgroup, sizeof cgroup);
    int r = has_cgroup ? cgroup_freeze(cgroup, is_frozen) : -ENOENT, of_slice = 0;
    if (has_cgroup && container_slice_find(cgroup, slice))
        of_slice = cgroup_freeze(slice, is_frozen);
    if (of_slice < 0 && !container_slice_find(cgroup, slice))
        of_slice = 0; /* its containers have ended meanwhile */
    if (r < 0 && shim)
        r = tree_signal(shim, is_frozen ? SIGSTOP : SIGCONT);
    return r < 0 ? r : of_slice;
}

/* The core does not count a task as paused that computes, else its neighbour would be taken for
 * alone. What has been frozen of it goes on. */
void suspension_pause(struct suspension *s, uint64_t task)
{
    struct event event = driver_event(s->parts.driver, EVENT_SUSPENSION_FAILED, task);
    char why[128];
    int r = set_frozen(s, task, true);
    if (r >= 0)
        return;
    set_frozen(s, task, false);
    snprintf(why, sizeof why, "its processes could not be paused: %s", strerror(-r));
    log_warning("task %llu: %s", (unsigned long long)task, why);
    suspension_note_failure(s, task, why);
    json_t *detail = json_pack("{s:s}", "why", why);
    event.suspension_failed.why = SUSPENSION_REFUSED;
    driver_feed(s->parts.driver, &event, detail);
    json_decref(detail);
}

void suspension_continue(struct suspension *s, uint64_t task)
{
    int r = set_frozen(s, task, false);
    if (r < 0)
        log_warning("task %llu: its processes could not be continued: %s", (unsigned long long)task,
            strerror(-r));
}

/* ---- life ---- */

static void on_answer(void *context)
{
    suspension_begin_next(context);
}

struct suspension *suspension_create(const struct suspension_options *options)
{
    struct suspension *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->parts = *options;
    s->helpers = (struct helper_pool){.loop = options->loop,
        .program = options->config->checkpoint,
        .on_answer = on_answer,
        .context = s};
    if (!helper_pool_open(&s->helpers)) {
        free(s);
        return NULL;
    }
    s->begin_order = begin_order;
    s->begin_next = suspension_begin_next;
    s->take_group = suspension_take_group;
    suspension_load_speed(s);
    suspension_load_module(s);
    uv_timer_init(options->loop, &s->timer);
    s->timer.data = s;
    return s;
}

void suspension_close(struct suspension *s)
{
    if (!s || s->is_closed)
        return;
    s->is_closed = true;
    helper_pool_close(&s->helpers);
    uv_close((uv_handle_t *)&s->timer, NULL);
    for (struct order *order = s->orders; order; order = order->next)
        order->asker = NULL;
}

void suspension_destroy(struct suspension *s)
{
    while (s && s->orders) {
        struct order *order = s->orders;
        s->orders = order->next;
        suspension_free_order(order);
    }
    while (s && s->failures) {
        struct failure *failure = s->failures;
        s->failures = failure->next;
        free(failure);
    }
    free(s);
}
