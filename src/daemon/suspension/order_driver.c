/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's part of orders, for tasks on several GPUs at a time. A checkpoint takes the driver
 * half a second for each GiB. So an order that has come to it is set aside with what is known of
 * it, and the next order begins; when the driver has answered, the order goes on. Each order that
 * is with the driver has a helper process for itself (checkpoint/helper_pool.h):
 *
 *     GPU 0, order 1    facts, gate, helper A: checkpoint ............. SUSPENDED
 *     GPU 1, order 2              facts, gate, helper B: checkpoint ..... SUSPENDED
 *     GPU 0, order 3                                                     facts, gate, helper A ...
 *
 * Contract:
 * 1. No order begins, or goes on, while another one with a GPU in common is with the driver. A
 *    restore frees what its helper holds for it: another helper that reserves memory there in that
 *    moment would take it, and the process would be lost. An order that waits for its GPUs goes on
 *    before those behind it in the queue.
 * 2. Host memory that an order with the driver still fills is not promised to the next one.
 */
#include <stdlib.h>

#include "daemon/suspension/suspension_state.h"

bool suspension_is_with_driver(const struct order *order)
{
    return order->run && order->run->group.is_at_work;
}

/* ---- which GPUs ---- */

/* Does the core have it there, on its way there, or with its context or its copy there? */
static bool is_of_task(const struct task *task, int gpu)
{
    const struct task_yield *yield = &task->run->yield;
    return gpu_is_among(gpu, task->gpus, task->n_gpus) ||
           gpu_is_among(gpu, yield->to_gpus, yield->to_gpus ? yield->n_to_gpus : 0) ||
           gpu_is_among(
               gpu, yield->context_gpus, yield->context_gpus ? yield->n_context_gpus : 0) ||
           (yield->has_neighbour && yield->neighbour == gpu);
}

void suspension_claim_gpus(const struct suspension *s, const struct order *order, bool *claims)
{
    const struct task *task = suspension_find_task(s, order->task);
    const struct cluster_view *view = core_view(s->parts.core);
    for (int gpu = 0; gpu < view->n_gpus; gpu++)
        claims[gpu] |= (task && is_of_task(task, gpu)) ||
                       (suspension_is_with_driver(order) &&
                           pooled_group_is_on(&order->run->group, view->gpus[gpu].id.uuid));
}

bool suspension_may_go_on(const struct suspension *s, const struct order *order, const bool *claims)
{
    const struct task *task = suspension_find_task(s, order->task);
    bool may = true;
    for (int gpu = 0; gpu < core_view(s->parts.core)->n_gpus && task; gpu++)
        may &= !(claims[gpu] && is_of_task(task, gpu));
    return may;
}

bool *suspension_claims(const struct suspension *s)
{
    bool *claims = calloc((size_t)core_view(s->parts.core)->n_gpus + 1, sizeof *claims);
    if (!claims)
        driver_die_of_memory();
    for (const struct order *order = s->orders; order; order = order->next)
        if (suspension_is_with_driver(order))
            suspension_claim_gpus(s, order, claims);
    return claims;
}

/* ---- to the driver and back ---- */

/* What the driver copies to the host of the order under way. */
static double bytes_to_host(const struct suspension *s, enum group_goal goal)
{
    struct reading bytes = s->record.is_carried ? suspension_context_bytes(s)
                                                : suspension_record_bytes(&s->record);
    return goal == GROUP_SUSPENDED ? reading_or(bytes, 0) : 0;
}

struct group_runner *suspension_runner(struct suspension *s)
{
    struct order *order = s->orders;
    if (!order->run)
        order->run = calloc(1, sizeof *order->run);
    if (!order->run)
        driver_die_of_memory();
    return &order->run->group.runner;
}

void suspension_start_driver(struct suspension *s)
{
    struct order *order = s->orders;
    struct driver_run *run = order->run;
    run->record = s->record;
    run->group.host_bytes = bytes_to_host(s, run->group.runner.group.goal);
    run->group.runner.speed = &s->speed;
    order->is_under_way = false;
    helper_pool_start(&s->helpers, &run->group, s->client);
    s->begin_next(s);
}

bool suspension_is_answered(const struct order *order)
{
    return suspension_is_with_driver(order) && order->run->group.is_answered;
}

void suspension_take_answer(struct suspension *s)
{
    struct driver_run *run = s->orders->run;
    helper_pool_take(&run->group);
    s->record = run->record;
    s->client = run->group.runner.client;
    s->take_group(s, run->group.answer);
}
