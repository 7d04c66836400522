/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effects that a step leaves for the driver. A decision is applied at once, by the same code
 * that applies it when a log is replayed, and its EFFECT_APPEND is left before the effects that
 * depend on it.
 */
#include "core/decide/effects.h"

#include <assert.h>
#include <errno.h>

#include "base/array.h"
#include "core/memory_domain.h"
#include "core/state/apply.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* Chosen: more than a step that fills 64 GPUs leaves, so that hardly any has to move them. */
#define EFFECTS_AT_FIRST 256

int core_add_effect(
    struct core *core, enum effect_kind kind, uint64_t task, const struct event *event)
{
    int wanted = core->n_effects < EFFECTS_AT_FIRST ? EFFECTS_AT_FIRST : core->n_effects + 1;
    if (ARRAY_RESERVE(core->effects, core->effects_capacity, wanted) < 0)
        return -ENOMEM;
    struct effect *effect = &core->effects[core->n_effects++];
    effect->kind = kind;
    effect->task = task;
    if (event)
        effect->event = *event;
    return 0;
}

/* The lists that the event left may be in scratch: those of the effect are the core's own. */
static void keep_lists(struct core *core, struct event *event)
{
    const struct task *task = core_find_task(core, event->task);
    if (event->kind == EVENT_PLACE)
        event->place.gpus = task->gpus;
    else if (event->kind == EVENT_RESUMING)
        event->yield.gpus = task->gpus;
    else if (event->kind == EVENT_SUSPENDING)
        event->yield.gpus = event->yield.n ? &task->run->yield.neighbour : NULL;
    else if (event->kind == EVENT_MOVING)
        event->yield.gpus = task->run->yield.to_gpus;
    else if (event->kind == EVENT_FIFO)
        event->fifo.free_us = core->fifo.free_us;
}

int core_decide(struct core *core, const struct event *event)
{
    int r = core_apply_event(core, event);
    assert(r <= 0);
    if (r == 0)
        r = core_add_effect(core, EFFECT_APPEND, event->task, event);
    if (r == 0)
        keep_lists(core, &core->effects[core->n_effects - 1].event);
    return r;
}

int core_record_external(struct core *core, int gpu, int64_t now_us)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    if (!view->external_processes.valid || view->external_processes.value == 0)
        return 0;
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(view);
    while ((resident = memory_domain_resident(&walk))) {
        struct event event = {
            .kind = EVENT_EXTERNAL_SEEN, .time_us = now_us, .task = resident->task};
        bool is_recorded = core_find_task(core, event.task)->had_coresidents;
        int r = is_recorded ? 0 : core_decide(core, &event);
        if (r < 0)
            return r;
    }
    return 0;
}
