/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's part of orders, for tasks on several GPUs at a time. A checkpoint takes the driver
 * half a second for each GiB. So an order that has come to it is set aside with what is known of
 * it, and the next order begins; when the driver has answered, the order goes on. Each order that
 * is with the driver has a helper process for itself, which later ones use again:
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
#include <string.h>

#include "daemon/suspension/suspension_state.h"

bool suspension_is_with_driver(const struct order *order)
{
    return order->run && order->run->is_at_work;
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

static bool is_of_group(const struct process_group *group, const char *uuid)
{
    for (size_t i = 0; i < group->count; i++)
        for (size_t k = 0; k < group->processes[i].n_memory; k++)
            if (strcmp(group->processes[i].memory[k].gpu, uuid) == 0)
                return true;
    return false;
}

void suspension_claim_gpus(const struct suspension *s, const struct order *order, bool *claims)
{
    const struct task *task = suspension_find_task(s, order->task);
    const struct cluster_view *view = core_view(s->parts.core);
    for (int gpu = 0; gpu < view->n_gpus; gpu++)
        claims[gpu] |= (task && is_of_task(task, gpu)) ||
                       (suspension_is_with_driver(order) &&
                           is_of_group(&order->run->runner.group, view->gpus[gpu].id.uuid));
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

/* ---- helpers ---- */

static bool is_used(const struct suspension *s, const struct helper_client *client)
{
    for (const struct order *order = s->orders; order; order = order->next)
        if (suspension_is_with_driver(order) && order->run->runner.client == client)
            return true;
    return false;
}

struct helper_client *suspension_find_helper(const struct suspension *s)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (s->helpers[i] && !is_used(s, s->helpers[i]))
            return s->helpers[i];
    return NULL;
}

/* There is one more than orders with the driver, if there may be. */
static void add_helper(struct suspension *s)
{
    size_t n = 0;
    while (n < HELPERS_MAX && s->helpers[n])
        n++;
    if (n < HELPERS_MAX && !suspension_find_helper(s))
        s->helpers[n] = helper_client_create(s->parts.loop, s->parts.config->checkpoint);
}

/* ---- to the driver and back ---- */

/* What the driver copies to the host of the order under way. */
static double bytes_to_host(const struct suspension *s, enum group_goal goal)
{
    struct reading bytes = s->record.is_carried ? suspension_context_bytes(s)
                                                : suspension_record_bytes(&s->record);
    return goal == GROUP_SUSPENDED ? reading_or(bytes, 0) : 0;
}

double suspension_bytes_with_driver(const struct suspension *s)
{
    double bytes = 0;
    for (const struct order *order = s->orders; order; order = order->next)
        if (suspension_is_with_driver(order))
            bytes += order->run->host_bytes;
    return bytes;
}

static void on_group_done(void *context, enum group_answer answer, const char *error)
{
    struct driver_run *run = context;
    run->answer = answer;
    run->is_answered = true;
    run->suspension->begin_next(run->suspension);
}

struct group_runner *suspension_runner(struct suspension *s)
{
    struct order *order = s->orders;
    if (!order->run)
        order->run = calloc(1, sizeof *order->run);
    if (!order->run)
        driver_die_of_memory();
    return &order->run->runner;
}

void suspension_start_driver(struct suspension *s)
{
    struct order *order = s->orders;
    struct driver_run *run = order->run;
    run->suspension = s;
    run->record = s->record;
    run->host_bytes = bytes_to_host(s, run->runner.group.goal);
    run->runner.client = s->client;
    run->runner.speed = &s->speed;
    run->runner.on_done = on_group_done;
    run->runner.context = run;
    run->is_at_work = true;
    run->is_answered = false;
    order->is_under_way = false;
    add_helper(s);
    group_runner_start(&run->runner);
    s->begin_next(s);
}

bool suspension_is_answered(const struct order *order)
{
    return suspension_is_with_driver(order) && order->run->is_answered;
}

void suspension_take_answer(struct suspension *s)
{
    struct driver_run *run = s->orders->run;
    run->is_at_work = false;
    s->record = run->record;
    s->client = run->runner.client;
    s->take_group(s, run->answer);
}
