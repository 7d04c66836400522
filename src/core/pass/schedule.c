/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scheduling pass: its stages, in the order of the table below. Each has a file in this folder.
 *
 * The order is a promise. Memory that tasks wait for, services that miss their targets and promises
 * of speed that are missed come before any placement, since tasks that run already depend on them.
 * Recovering tasks and failing GPUs come before the queues, reservations in advance before the
 * queue of all. Room is made last: for a head that still waits after all else.
 *
 * A new way in which tasks start, stop or move is a file with a function of this form, and a row. A
 * pass is bounded: each stage limits how many tasks of a queue it tries.
 *
 * Contract: another pass at the same time decides nothing (tests/unit/core/test_walk.c). So nothing
 * that can start waits for the next event, which may come much later. A decision may open something
 * to a stage that has had its turn: then the stages have another round.
 *
 *     round 1   queues   task 3 has to wait; task 1 is paused for it
 *     round 2   queues   task 3 starts beside task 1
 *     round 3   nothing  the pass is over
 */
#include "core/pass/schedule.h"

#include "base/array.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/pass/advance_pass.h"
#include "core/pass/context_pass.h"
#include "core/pass/failing_gpus.h"
#include "core/pass/host_pass.h"
#include "core/pass/main_queue_pass.h"
#include "core/pass/make_room.h"
#include "core/pass/memory_answer.h"
#include "core/pass/neighbour_pass.h"
#include "core/pass/preempt.h"
#include "core/pass/probe_pass.h"
#include "core/pass/promise_pass.h"
#include "core/pass/recall.h"
#include "core/pass/recovery.h"
#include "core/pass/service_pass.h"
#include "core/pass/slots.h"
#include "core/pass/suspended_pass.h"
#include "core/pass/unused_pass.h"
#include "core/state/claims.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* Suspended tasks come before the main queue; while one of them waits, no task of that starts where
 * it could be resumed. */
static int schedule_in_order(struct core *core, int64_t now_us)
{
    bool suspended_waits = false;
    int r = core->suspended_queue.first ? core_schedule_suspended(core, now_us, &suspended_waits)
                                        : 0;
    if (r < 0 || suspended_waits)
        return r;
    return core_has_turns(core) ? core_schedule_turns(core, now_us)
                                : core_schedule_main(core, now_us);
}

static int schedule_queues(struct core *core, int64_t now_us)
{
    return core->settings.preempt ? core_schedule_preempting(core, now_us)
                                  : schedule_in_order(core, now_us);
}

static const struct pass_stage stages[] = {
    {"memory", core_settle_memory_waits, "allocations that wait are answered, or given room"},
    {"services", core_schedule_services, "tasks give way to services that miss their targets"},
    {"promises", core_schedule_promises, "tasks give way to those without their promised speed"},
    {"probes", core_schedule_probes, "tasks pause so that a promised one is measured alone"},
    {"recovery", core_schedule_recovery, "tasks that ran out of GPU memory start, or GPUs drain"},
    {"failing", core_empty_failing_gpus, "tasks leave GPUs that fail"},
    {"recall", core_recall_ranks, "ranks of NCCL come back in time"},
    {"reserved", core_schedule_advances, "users with a reservation now start their tasks"},
    {"queues", schedule_queues, "suspended tasks are resumed, the main queue starts"},
    {"unused", core_reclaim_unused, "tasks that do not use their GPUs give way to those that wait"},
    {"host", core_schedule_host, "tasks that need no GPU start"},
    {"room", core_make_room, "a task is moved so that the head can start"},
    {"contexts", core_free_of_contexts, "contexts of suspended tasks leave for the next task"},
    {"lent", core_return_lent_memory, "copies leave the memory of GPUs that tasks want"},
};

const struct pass_stage *core_pass_stages(int *ret_n)
{
    *ret_n = (int)ARRAY_SIZE(stages);
    return stages;
}

static int run_stages(struct core *core, int64_t now_us)
{
    int r = 0;
    core->has_wanters = false;
    core_release_returns(core);
    for (size_t i = 0; i < ARRAY_SIZE(stages) && r == 0; i++)
        r = stages[i].run(core, now_us);
    return r;
}

/* ---- rounds ---- */

static bool is_any_stopped(struct core *core)
{
    bool any = false;
    for (int i = 0; i < core->view.n_gpus && core->any_stopped && !any; i++)
        for (int k = 0; k < core->view.gpus[i].n_residents; k++)
            any |= core->view.gpus[i].residents[k].is_stopped;
    return core->any_stopped = any;
}

/* A placement takes GPUs from the tasks that wait. But those that have given way may have waited
 * for it; GPUs are kept free or drained by what is on them; and by what users have now, another
 * task may come first. And a policy may find that a task delays others less, or gains more, beside
 * one more: a task of several GPUs is as slow on each as on the slowest. */
static bool opens_by_placing(struct core *core, int64_t now_us)
{
    const struct task *head = core_head_of_queue(core);
    return core->suspended_queue.first || core->n_advances > 0 || core->drained_for ||
           is_any_stopped(core) ||
           (head && (head->id != core->main_wait.task ||
                        core_finds_gpus(core, head, NULL, now_us, &core->placement)));
}

/* Where a round began. */
struct round {
    int n_effects;
    uint64_t n_choices;
};

static struct round begin_round(const struct core *core)
{
    return (struct round){core->n_effects, core->n_choices};
}

/* May another round decide more, because of what this one has decided? With reservations in
 * advance the GPUs that may be drained depend on those that are reserved for the head later. */
static bool opens_more(struct core *core, const struct round *round, int64_t now_us)
{
    bool any_placed = false;
    if (core->drained_for && core->n_advances > 0 && core->n_choices > round->n_choices)
        return true;
    for (int i = round->n_effects; i < core->n_effects; i++) {
        const struct effect *effect = &core->effects[i];
        if (effect->kind == EFFECT_APPEND && effect->event.kind != EVENT_PLACE)
            return true;
        any_placed |= effect->kind == EFFECT_APPEND;
    }
    return any_placed && opens_by_placing(core, now_us);
}

static bool is_reported_later(const struct core *core, int i)
{
    for (int k = i + 1; k < core->n_effects; k++)
        if (core->effects[k].kind == EFFECT_WAIT && core->effects[k].task == core->effects[i].task)
            return true;
    return false;
}

/* A task that waited in one round may have started in the next, or wait for another reason. */
static void drop_former_waits(struct core *core, int n_effects_before)
{
    int n = n_effects_before;
    for (int i = n; i < core->n_effects; i++) {
        const struct effect *effect = &core->effects[i];
        bool is_former = effect->kind == EFFECT_WAIT &&
                         (!core_find_task(core, effect->task)->queue || is_reported_later(core, i));
        if (!is_former)
            core->effects[n++] = *effect;
    }
    core->n_effects = n;
}

/* Chosen: no random walk has needed more than 4. Decisions that undo each other must not hold up
 * the step. */
#define ROUNDS_MAX 8

int core_schedule(struct core *core, int64_t now_us)
{
    const struct round first = begin_round(core);
    struct round round = first;
    int r = run_stages(core, now_us), n_rounds = 1;
    for (; n_rounds < ROUNDS_MAX && r == 0 && opens_more(core, &round, now_us); n_rounds++) {
        round = begin_round(core);
        r = run_stages(core, now_us);
    }
    if (n_rounds > 1)
        drop_former_waits(core, first.n_effects);
    return r;
}
