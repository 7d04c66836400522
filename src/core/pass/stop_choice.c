/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which running tasks are stopped so that a waiting one, the head, can start or be resumed: one on
 * each GPU that it lacks. A rule of the caller selects the tasks that may be stopped (preempt.c: by
 * priority and rank; slots.c: when their time slot is over; unused_pass.c: when they do not use
 * their GPUs). Of those a task is chosen only if the
 * head then has the memory that it needs on that GPU, and the tasks that stay leave it SMs. No
 * other task is stopped for a head for which one has been, nor while a GPU was not sampled since a
 * task came or left.
 *
 * Example: the head needs 30 GiB. On a GPU of 40 GiB run task 1 (20 GiB) and task 2 (15 GiB). Task
 * 1 is not enough, nor is task 2: none is stopped. On another runs task 3 alone: it is stopped.
 */
#include "core/pass/stop_choice.h"

#include <math.h>

#include "base/top_k.h"
#include "core/ask/context_place.h"
#include "core/ask/giving_way.h"
#include "core/ask/host_check.h"
#include "core/ask/placement.h"
#include "core/ask/waits.h"
#include "core/decide/give_way.h"
#include "core/memory_domain.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* The memory that would be free when `out` had left it, or kept it, if it can only be paused, and
 * so had contexts of suspended tasks that can leave. What a resident of the memory domain will
 * still take is not free. */
static double left_without(
    const struct core *core, const struct gpu_view *gpu, const struct task *out, int64_t now_us)
{
    double left = reading_assume(gpu_view_free_bytes(gpu), 0) - gpu_view_returned_bytes(gpu) +
                  core_leavable_bytes(core, gpu, CONTEXT_FOR_START, now_us);
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk))) {
        double used = reading_assume(resident->mem_used_bytes, 0);
        if (resident->task == out->id && core_can_suspend(core, out))
            left += core_freed_bytes(out, used);
        else
            left -= fmax(0, reading_assume(resident->need_bytes, used) - used);
    }
    return left;
}

#define SMACT_TOGETHER 1.0 /* chosen: tasks of more SM activity together slow each other down */

static bool is_over_smact_max(const struct core *core, const struct gpu_view *gpu)
{
    return gpu->smact_level.valid && gpu->smact_level.value > core->settings.conditions.smact_max;
}

/* Does `in` take the place of `out` as long as it is not known to be more active? Then the tasks
 * that stay keep what they had. Among tasks of one priority only by slots: in simulations las
 * completed tasks 5 % later where they took each other's places. */
static bool takes_its_place(
    const struct stop_rule *rule, const struct task *out, const struct task *in)
{
    return rule->takes_place || in->request.priority > out->request.priority;
}

/* Would `in` have its memory on the GPU, and SMs, when `out` had left it? */
static bool would_fit(const struct core *core, const struct gpu_view *gpu,
    const struct stop_rule *rule, const struct task *out, const struct task *in, int64_t now_us)
{
    double of_in = reading_assume(in->request.expect.smact, 1), of_out = 1, of_others = 0;
    bool is_empty = !memory_domain_has_others(gpu);
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        double smact = resident->is_stopped ? 0 : reading_assume(resident->expect.smact, 1);
        bool is_out = resident->task == out->id;
        is_empty &= is_out;
        of_out = is_out ? smact : of_out;
        of_others += is_out ? 0 : smact;
    }
    bool has_sms = rule->reason == YIELD_UNUSED
                       ? !is_over_smact_max(core, gpu)
                       : of_in + of_others <= SMACT_TOGETHER ||
                             (of_in <= of_out && takes_its_place(rule, out, in));
    bool may_share = !in->request.exclusive && has_sms;
    return left_without(core, gpu, out, now_us) >= core_needed_bytes(core, in) &&
           (is_empty || may_share);
}

/* Would the head still be kept off the GPU after the stop? A task that can only be paused stays on
 * its GPU; and the admission of a service does not depend on the other tasks. */
static bool stays_closed(const struct core *core, const struct task *out, enum verdict_kind present)
{
    switch (present) {
    case VERDICT_SERVICE:
    case VERDICT_SERVICE_SLOWED:
    case VERDICT_RETURN:
        return true;
    case VERDICT_NOT_IDLE:
    case VERDICT_MPS_FULL:
    case VERDICT_ONE_PROCESS:
        return !core_can_suspend(core, out) || core_keeps_contexts(out);
    case VERDICT_EXCLUSIVE:
    case VERDICT_FULL:
    case VERDICT_OTHER_MPS_USER:
        return !core_can_suspend(core, out);
    default:
        return false;
    }
}

struct stop {
    int gpu;
    const struct task *task; /* NULL: the GPU admits the head already */
};

/* The criteria for the order of stops. */
struct stop_order {
    const struct core *core;
    const struct stop_rule *rule;
    int64_t now_us;
};

/* The resident that gives way to the head there. */
static struct stop find_stop(const struct stop_order *order, int i, const struct task *head)
{
    const struct core *core = order->core;
    const struct stop_rule *rule = order->rule;
    const struct gpu_view *gpu = &core->view.gpus[i];
    struct stop best = {.gpu = i};
    for (int k = 0; k < gpu->n_residents; k++) {
        const struct task *task = core_find_task(core, gpu->residents[k].task);
        bool may_be = rule->may_be_stopped(core, task, head, order->now_us) &&
                      !stays_closed(core, task, core->placement.verdicts[i].kind) &&
                      would_fit(core, gpu, rule, task, head, order->now_us);
        if (may_be && (!best.task || rule->is_stopped_rather(core, task, best.task, order->now_us)))
            best.task = task;
    }
    return best;
}

static bool is_better_stop(const void *a, const void *b, const void *context)
{
    const struct stop *one = a, *other = b;
    const struct stop_order *order = context;
    if (!one->task || !other->task)
        return !one->task && other->task;
    return order->rule->is_stopped_rather(order->core, one->task, other->task, order->now_us);
}

/* Not while a task is just leaving or coming, nor where the machine would not admit the head even
 * then: a task that is stopped keeps its CPUs, its main memory, and its part of the GPU in a
 * cluster. */
static bool may_get_room(const struct core *core, int i, const struct task *head)
{
    const struct node_check *check = &core->node_check;
    if (check->ask && check->ask(check->context, head, i) != NODE_ADMITS)
        return false;
    const struct gpu_view *gpu = &core->view.gpus[i];
    bool is_busy = false;
    for (int k = 0; k < gpu->n_residents; k++)
        is_busy |= task_state_is_changing(core_find_task(core, gpu->residents[k].task)->state);
    return !is_busy && cluster_view_is_available(
                           &core->view, i, head, CLAIMS_LEAVING, placement_aside(&core->placement));
}

static bool has_been_stopped_for(
    const struct core *core, const struct task *head, enum yield_reason reason)
{
    for (int i = 0; i < core->n_tasks; i++) {
        const struct task *task = core->tasks[i];
        bool is_stopped = task->state == TASK_PAUSED || task->state == TASK_SUSPENDED ||
                          task->state == TASK_SUSPENDING;
        if (is_stopped && task->run->yield.reason == reason && task->run->yield.to_task == head->id)
            return true;
    }
    return false;
}

#define GPUS_OF_HEAD 64 /* chosen: for a head of more GPUs no task is stopped */

int core_stop_tasks_for(
    struct core *core, const struct task *head, const struct stop_rule *rule, int64_t now_us)
{
    const struct stop_order order = {core, rule, now_us};
    struct stop stops[GPUS_OF_HEAD];
    size_t n = 0, wanted = (size_t)head->request.gpus;
    if (wanted > GPUS_OF_HEAD || head->request.need.kind == NEED_PENDING ||
        has_been_stopped_for(core, head, rule->reason) || core_awaits_sample(core, head) ||
        core_check_host(core, head).kind != VERDICT_FITS || /* a stopped task keeps its part */
        core_try_gpus(core, head, now_us, &core->placement) == PLACE_NOW)
        return 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        if (!may_get_room(core, i, head))
            continue;
        struct stop stop = {.gpu = i};
        if (core->placement.verdicts[i].kind != VERDICT_FITS)
            stop = find_stop(&order, i, head);
        if (stop.task || core->placement.verdicts[i].kind == VERDICT_FITS)
            n = top_k_insert(stops, n, wanted, sizeof *stops, &stop, is_better_stop, &order);
    }
    int r = 0;
    for (size_t i = 0; i < n && n == wanted && r == 0; i++)
        if (stops[i].task && stops[i].task->state == TASK_RUNNING)
            r = core_stop_task(core, stops[i].task, rule->reason, head->id, now_us);
    return r;
}
