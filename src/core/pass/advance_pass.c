/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations in advance in a pass. While one lasts, tasks of its users are placed before all
 * others of the main queue, on up to as many GPUs as are reserved. Before it begins, its GPUs need
 * not be idle: where they are kept from the head, which waits, tasks behind it that end in time may
 * use them. The head loses nothing by that.
 */
#include "core/pass/advance_pass.h"

#include "base/clock.h"
#include "core/ask/host_check.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"
#include "core/ask/set_aside.h"
#include "core/decide/place.h"
#include "core/questions.h"
#include "core/state/claims.h"
#include "core/state/state.h"

/* ---- what may use its GPUs until it begins ---- */

/* Closes the GPUs that are not kept from the head. Returns whether any is. */
static bool close_others(struct core *core, const struct task *head, int64_t now_us)
{
    bool any = false;
    core_set_aside(core, head, NULL, now_us, &core->placement);
    for (int i = 0; i < core->view.n_gpus; i++) {
        bool is_kept = placement_sets_aside(&core->placement, i);
        core->closed[i] = is_kept ? 0 : core->advances[0].id;
        any |= is_kept;
    }
    return any;
}

enum { FILL_TRIES_MAX = 64 }; /* chosen, to keep a pass short; so is CORE_QUEUE_DEPTH_MAX */

/* The head loses nothing by it: it may not use these GPUs. */
int core_fill_kept(struct core *core, const struct task *head, int64_t now_us)
{
    const struct task_queue *queue;
    int r = 0, tries = FILL_TRIES_MAX, depth = CORE_QUEUE_DEPTH_MAX;
    if (core->n_advances == 0 || !close_others(core, head, now_us))
        return 0;
    for (int i = 0; (queue = core_main_queue(core, i)) && r == 0; i++) {
        struct task *next;
        for (struct task *task = queue->first; task && r == 0 && tries > 0 && depth-- > 0;
             task = next) {
            next = task->next;
            bool may_pass = task != head && task->request.need.kind != NEED_PENDING &&
                            core_task_ends_us(core, task, now_us) != TIME_NEVER &&
                            !core_leaves_host_to(core, task, head);
            if (may_pass && tries-- > 0 &&
                core_finds_gpus(core, task, core->closed, now_us, &core->placement))
                r = core_place_task(core, task, core->placement.gpus, now_us);
        }
    }
    return r;
}

/* ---- tasks of its users ---- */

static bool is_placed_first(
    const struct core *core, const struct task *task, const struct advance *advance, int held)
{
    return core_is_advance_member(advance, task->uid) && task->request.need.kind != NEED_PENDING &&
           held + task->request.gpus <= advance->gpus && core_can_be_served(core, task);
}

/* With ORDER_FAIR a queue is one user's. */
static bool is_of_others(
    const struct core *core, const struct task_queue *queue, const struct advance *advance)
{
    return core->settings.order == ORDER_FAIR && queue->first &&
           !core_is_advance_member(advance, queue->first->uid);
}

static int schedule_advance(struct core *core, const struct advance *advance, int64_t now_us)
{
    const struct task_queue *queue;
    int r = 0, held = core_count_held(core, advance), tried = 0;
    for (int i = 0; (queue = core_main_queue(core, i)) && r == 0; i++) {
        struct task *next;
        if (is_of_others(core, queue, advance))
            continue;
        for (struct task *task = queue->first;
             task && r == 0 && held < advance->gpus && tried < CORE_QUEUE_DEPTH_MAX;
             task = next, tried++) {
            next = task->next;
            if (!is_placed_first(core, task, advance, held))
                continue;
            core_release_reservation(core); /* of the head: it comes after these */
            if (core_try_gpus(core, task, now_us, &core->placement) == PLACE_NOW)
                r = core_place_task(core, task, core->placement.gpus, now_us);
            held = core_count_held(core, advance);
        }
    }
    return r;
}

int core_schedule_advances(struct core *core, int64_t now_us)
{
    int r = 0;
    for (size_t i = 0; i < core->n_advances && r == 0; i++) {
        const struct advance *advance = &core->advances[i];
        if (advance->from_us <= now_us && now_us < advance->until_us)
            r = schedule_advance(core, advance, now_us);
    }
    return r;
}
