/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step leaves for the driver. A decision is applied at once, by the same code that applies
 * it when a log is replayed, and its EFFECT_APPEND is left before the effects that depend on it.
 */
#include <assert.h>
#include <errno.h>

#include "base/array.h"
#include "core/core_private.h"

int core_add_effect(
    struct core *core, enum effect_kind kind, uint64_t task, const struct event *event)
{
    if (ARRAY_RESERVE(core->effects, core->effects_capacity, core->n_effects + 1) < 0)
        return -ENOMEM;
    struct effect *effect = &core->effects[core->n_effects++];
    *effect = (struct effect){.kind = kind, .task = task};
    if (event)
        effect->event = *event;
    return 0;
}

const struct effect *core_effects(const struct core *core, int *ret_n)
{
    *ret_n = core->n_effects;
    return core->effects;
}

/* The event may point to GPUs in scratch: the effect points to the task's own list. */
int core_decide(struct core *core, const struct event *event)
{
    int r = core_apply_event(core, event);
    assert(r <= 0);
    if (r < 0)
        return r;
    struct event lasting = *event;
    const struct task *task = core_find_task(core, event->task);
    if (event->kind == EVENT_PLACE)
        lasting.place.gpus = task->gpus;
    else if (event->kind == EVENT_RESUMING)
        lasting.yield.gpus = task->gpus;
    else if (event->kind == EVENT_MOVING)
        lasting.yield.gpus = task->yield.to_gpus;
    return core_add_effect(core, EFFECT_APPEND, event->task, &lasting);
}

int core_record_external(struct core *core, int gpu, int64_t now_us)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    if (!view->external_processes.valid || view->external_processes.value == 0)
        return 0;
    for (int i = 0; i < view->n_residents; i++) {
        struct event event = {
            .kind = EVENT_EXTERNAL_SEEN, .time_us = now_us, .task = view->residents[i].task};
        bool is_recorded = core_find_task(core, event.task)->had_coresidents;
        int r = is_recorded ? 0 : core_decide(core, &event);
        if (r < 0)
            return r;
    }
    return 0;
}
