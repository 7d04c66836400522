/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backfill: tasks behind the head of the main queue start before it, where their policies see that
 * it is not delayed. They are tried in the order of the users' queues; of one user's, under a
 * policy that takes the longest first, the shortest. Behind a head that was run again they start in
 * order: one that has to wait holds up those behind it (ask/queue_head.c).
 *
 * Each try costs a verdict on each GPU, so their number is limited, and three things save them: of
 * tasks that are alike only the first is tried, what all have in common is predicted once for each
 * GPU (struct head_outlook), and no verdict is explained.
 */
#include "core/pass/behind_head.h"

#include <string.h>

#include "core/ask/backfill_list.h"
#include "core/ask/host_check.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/decide/place.h"
#include "core/kind_match.h"
#include "core/pass/head_reservation.h"
#include "core/pass/other_kinds.h"
#include "core/questions.h"
#include "core/state/state.h"

/* ---- which tasks are alike ---- */

static bool expects_the_same(const struct expectation *a, const struct expectation *b)
{
    return reading_equals(a->smact, b->smact) && reading_equals(a->gract, b->gract) &&
           reading_equals(a->dram, b->dram) && reading_equals(a->time_us, b->time_us);
}

/* Has a policy the same answer for both? Many tasks in a queue are alike, such as those of an
 * array: when one of them has to wait, so have the others. */
static bool asks_for_the_same(const struct task *a, const struct task *b)
{
    const struct task_request *x = &a->request, *y = &b->request;
    return a->uid == b->uid && x->gpus == y->gpus && x->nodes == y->nodes &&
           x->policy == y->policy && x->exclusive == y->exclusive && x->sharing == y->sharing &&
           x->thread_percent == y->thread_percent && x->need.kind == y->need.kind &&
           x->need.bytes == y->need.bytes && x->time_limit_us == y->time_limit_us &&
           x->host.cpus == y->host.cpus && x->host.memory_bytes == y->host.memory_bytes &&
           x->service.is_service == y->service.is_service &&
           a->possible_cause == b->possible_cause && a->mps_failures == b->mps_failures &&
           expects_the_same(&x->expect, &y->expect) && kind_match_same(x->gpu_kind, y->gpu_kind);
}

/* The head was tried last. Does a task like it have to wait as well? Not where residents were
 * backfilled before the head: it leaves them the memory that they will still take, other tasks do
 * not (contract 5 of core/policy.h). And of several GPUs a policy may choose others where fewer are
 * open. */
static bool do_tasks_like_it_wait(const struct core *core, const struct task *head)
{
    return head->request.gpus == 1 && core->n_advances == 0 && head->n_backfilled == 0;
}

/* ---- trying them ---- */

/* From now on, until core->has_outlooks is false again, what tasks behind the head have in common
 * is predicted once. To be called whenever the view has changed. */
static void begin_outlooks(struct core *core)
{
    memset(core->outlooks, 0, (size_t)core->view.n_gpus * sizeof *core->outlooks);
    core->has_outlooks = true;
}

static int place_behind(struct core *core, struct task *task, int64_t now_us)
{
    int r = core_place_task(core, task, core->placement.gpus, now_us);
    begin_outlooks(core);
    return r;
}

/* Tries these tasks in their order. One that is like the last that has to wait is not tried. */
static int try_behind(
    struct core *core, struct task *const *behind, int n, const struct task *head, int64_t now_us)
{
    int r = 0;
    const bool in_order = core_queue_goes_on(core, head);
    const struct task *waits = do_tasks_like_it_wait(core, head) ? head : NULL;
    for (int i = 0; i < n && r == 0; i++) {
        bool is_alike = waits && !core->node_check.ask && asks_for_the_same(behind[i], waits);
        if (is_alike || core_leaves_host_to(core, behind[i], head) ||
            (in_order && core_find_obstacle(core, behind[i], behind, i)))
            continue;
        if (core_finds_gpus(core, behind[i], NULL, now_us, &core->placement))
            r = place_behind(core, behind[i], now_us);
        else if (behind[i]->n_backfilled == 0) /* otherwise it was the head */
            waits = behind[i];
    }
    return r;
}

int core_backfill_behind(struct core *core, const struct task *head, int64_t now_us)
{
    struct task *behind[CORE_BACKFILL_TRIES_MAX];
    if (!core_backfills(core, head) || !core_reserve_gpus(core, head, now_us))
        return core_pass_other_kinds(core, head, now_us);
    int n = core_list_behind(core, head, behind, core_backfill_tries(core));
    begin_outlooks(core);
    int r = try_behind(core, behind, n, head, now_us);
    core->has_outlooks = false;
    return r;
}
