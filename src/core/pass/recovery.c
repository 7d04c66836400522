/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that ran out of GPU memory come first, by submission. If the first of them has to wait, as
 * many GPUs as it wants are drained: no other task is placed there, so that they become idle, or
 * have the memory that it requires (state/recovery_need.c). Recovering tasks behind it are placed
 * on other GPUs.
 *
 * Drained is the GPU that will be free first (drain_order.c). The choice is made again in each
 * pass, and changes only to GPUs of which the last is free sooner: otherwise those that are drained
 * stay.
 *
 * Example: task 1 recovers and wants one of two GPUs to itself, both have residents. The GPU with
 * fewer is drained. Task 2, which recovers too, may start on the other one; task 3 of the main
 * queue as well, but not on the drained one.
 */
#include "core/pass/recovery.h"

#include "base/top_k.h"
#include "core/ask/placement.h"
#include "core/ask/servable.h"
#include "core/decide/place.h"
#include "core/node_spread.h"
#include "core/pass/drain_order.h"
#include "core/state/claims.h"
#include "core/state/recovery_need.h"
#include "core/state/state.h"

/* ---- GPUs that can be drained ---- */

static bool may_drain(const struct core *core, int i, const struct task *task, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    return !gpu_view_is_used_externally(gpu, core->settings.settle_us) &&
           core_can_serve(core, i, task, &core->placement, now_us);
}

/* A recovering task takes reserved GPUs: others will be reserved for the head of the queue. */
static void release_reservation_of_chosen(struct core *core, const struct task *task)
{
    bool any = false;
    for (int i = 0; i < task->request.gpus; i++)
        any |= core->view.gpus[core->placement.gpus[i]].claims[CLAIM_HEAD] != 0;
    if (any)
        core_release_reservation(core);
}

/* The GPUs of one node that are drained soonest. Returns their number, at most the number that the
 * task requests. */
static size_t list_drainable(const struct core *core, const struct task *task, int first, int end,
    const struct drain_order *order, int64_t now_us, int *ret_gpus)
{
    size_t n = 0, wanted = (size_t)task->request.gpus;
    for (int i = first; i < end; i++) {
        bool is_among_best = n < wanted || drain_comes_before(order, i, ret_gpus[wanted - 1]);
        if (is_among_best && may_drain(core, i, task, now_us))
            n = top_k_insert(ret_gpus, n, wanted, sizeof *ret_gpus, &i, drain_is_sooner, order);
    }
    return n;
}

/* The node with enough drainable GPUs whose slowest one is drained soonest: sets the GPUs of the
 * answer. Returns the slowest; -1 when there is no such node. */
static int choose_on_node(
    struct core *core, const struct task *task, const struct drain_order *order, int64_t now_us)
{
    const struct cluster_view *view = &core->view;
    size_t wanted = (size_t)task->request.gpus;
    int best = -1, slowest = -1, listed = -1; /* first GPUs of nodes */
    for (int first = 0, end; first < view->n_gpus; first = end) {
        end = wanted > 1 ? cluster_view_node_end(view, first) : view->n_gpus;
        listed = first;
        if (list_drainable(core, task, first, end, order, now_us, core->placement.gpus) < wanted)
            continue;
        int last = core->placement.gpus[wanted - 1];
        if (best < 0 || drain_comes_before(order, last, slowest)) {
            best = first;
            slowest = last;
        }
    }
    if (best >= 0 && best != listed)
        list_drainable(core, task, best, cluster_view_node_end(view, best), order, now_us,
            core->placement.gpus);
    return slowest;
}

static bool are_drained(const struct core *core, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (!core->view.gpus[gpus[i]].claims[CLAIM_DRAIN])
            return false;
    return true;
}

/* Those that are drained already, unless all of others are free sooner. Mostly these are free
 * first. */
static bool choose_drained(
    struct core *core, const struct task *task, struct drain_order *order, int64_t now_us)
{
    int soonest = choose_on_node(core, task, order, now_us);
    if (soonest < 0 || are_drained(core, core->placement.gpus, task->request.gpus))
        return soonest >= 0;
    if (!core->drained_for)
        return true;
    order->prefers_drained = true;
    int drained = choose_on_node(core, task, order, now_us);
    order->prefers_drained = false;
    if (drain_compare_free(order, soonest, drained) < 0)
        choose_on_node(core, task, order, now_us);
    return true;
}

/* Which GPUs of several nodes may be drained for a task: those with few enough users. */
struct drainable {
    const struct core *core;
    const struct task *task;
    int users_max;
    int64_t now_us;
};

static bool may_drain_for(const void *context, int gpu)
{
    const struct drainable *from = context;
    return drain_count_users(&from->core->view.gpus[gpu], from->now_us) <= from->users_max &&
           may_drain(from->core, gpu, from->task, from->now_us);
}

/* The nodes and indices whose fullest GPU has the fewest users: sets the GPUs of the answer. */
static bool choose_drained_over_nodes(struct core *core, const struct task *task, int64_t now_us)
{
    struct drainable from = {core, task, 0, now_us};
    int most = 0;
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].n_residents > most)
            most = core->view.gpus[i].n_residents;
    for (; from.users_max <= most; from.users_max++)
        if (node_spread_find(
                &core->view, &task->request, may_drain_for, &from, core->placement.gpus))
            return true;
    return false;
}

/*
 * Drains as many GPUs as the task wants, so that it starts even when the main queue never runs dry.
 * None is drained when too few could be: GPUs must not be idle for nothing.
 */
static void drain_gpus(struct core *core, const struct task *task, int64_t now_us)
{
    int wanted = task->request.gpus;
    double wanted_bytes = core_recovery_need(core, task).free_bytes;
    struct drain_order order = {.gpus = core->view.gpus, .outlooks = core->drain_outlooks};
    drain_expect(core->view.gpus, core->view.n_gpus, wanted_bytes, now_us, core->drain_outlooks);
    bool is_found = node_spread_is_wanted(&task->request)
                        ? choose_drained_over_nodes(core, task, now_us)
                        : choose_drained(core, task, &order, now_us);
    core_stop_draining(core);
    if (!is_found)
        return;
    for (int i = 0; i < wanted; i++)
        core->view.gpus[core->placement.gpus[i]].claims[CLAIM_DRAIN] = task->id;
    core->drained_for = task->id;
    release_reservation_of_chosen(core, task);
}

/* ---- the queue ---- */

/* An upper bound of the GPUs that the tasks behind the first recovering one can take. */
struct open_gpus {
    int unused; /* for a task that recovers alone */
    int all;
};

static struct open_gpus count_open_gpus(const struct core *core, int64_t now_us)
{
    struct open_gpus open = {0};
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        open.all += !gpu->claims[CLAIM_DRAIN];
        open.unused += !gpu->claims[CLAIM_DRAIN] && !drain_has_users(gpu, now_us);
    }
    return open;
}

/* Cannot the task start, wherever others are? */
static bool is_closed_out(const struct core *core, const struct task *task, struct open_gpus open)
{
    int wanted = task->request.gpus;
    if (wanted <= open.unused || wanted > open.all)
        return wanted > open.all;
    return core_recovers_alone(core, task);
}

static int place_recovering(struct core *core, struct task *task, int64_t now_us)
{
    release_reservation_of_chosen(core, task);
    return core_place_task(core, task, core->placement.gpus, now_us);
}

/* GPUs are drained for the first recovering task; those behind it may take others. */
static int schedule_first_recovering(struct core *core, struct task *task, int64_t now_us)
{
    if (core->drained_for != task->id)
        core_stop_draining(core);
    if (core_try_gpus(core, task, now_us, &core->placement) == PLACE_NOW)
        return place_recovering(core, task, now_us);
    int r = core_report_wait(core, &core->recovery_wait, task, core->placement.verdicts);
    drain_gpus(core, task, now_us);
    return r;
}

/* Chosen, to keep a pass short: recovering tasks behind the first one that are tried in a pass. */
#define RECOVERY_TRIES_MAX 64

int core_schedule_recovery(struct core *core, int64_t now_us)
{
    struct task *next;
    int r = 0, tries = RECOVERY_TRIES_MAX;
    struct open_gpus open = {0};
    for (struct task *task = core->recovery_queue.first; task && r == 0; task = next) {
        next = task->next;
        if (task == core->recovery_queue.first)
            r = schedule_first_recovering(core, task, now_us);
        else if (tries-- == 0 || open.all == 0)
            return 0;
        else if (is_closed_out(core, task, open) ||
                 core_try_gpus(core, task, now_us, &core->placement) != PLACE_NOW)
            continue;
        else
            r = place_recovering(core, task, now_us);
        open = count_open_gpus(core, now_us);
    }
    return r;
}
