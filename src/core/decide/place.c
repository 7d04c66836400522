/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task has found GPUs, or has to wait. A placement is decided with the way in which the task
 * shares its GPUs, and followed by the start. A wait leaves an effect only when its reasons have
 * changed: their figures change all the time.
 */
#include "core/decide/place.h"

#include "core/decide/effects.h"
#include "core/questions.h"
#include "core/sharing_choice.h"
#include "core/state/state.h"

int core_place_task(struct core *core, struct task *task, const int *gpus, int64_t now_us)
{
    struct event event = {.kind = EVENT_PLACE, .time_us = now_us, .task = task->id};
    event.place.gpus = gpus;
    event.place.n = task->request.gpus;
    if (task->request.gpus > 0) {
        event.place.exclusive = core_wants_exclusive_gpus(core, task);
        event.place.share = sharing_choose(
            &core->settings, &core->view, task, gpus, task->request.gpus, event.place.exclusive);
    }
    int r = core_decide(core, &event);
    for (int i = 0; i < task->n_gpus && r == 0; i++)
        r = core_record_external(core, task->gpus[i], now_us);
    return r < 0 ? r : core_add_effect(core, EFFECT_START, task->id, NULL);
}

int core_report_wait(struct core *core, struct reported_wait *reported, const struct task *task,
    const struct verdict *verdicts)
{
    const uint64_t multiplier = 0x9e3779b97f4a7c15u; /* 2^64 / the golden ratio: mixes well */
    uint64_t reasons = 0;
    for (int i = 0; i < core->view.n_gpus; i++) { /* by words: base/hash.h goes by bytes */
        const struct verdict *verdict = &verdicts[i];
        reasons ^= verdict->task << 8 | (uint64_t)verdict->kind;
        reasons = (reasons << 32 | reasons >> 32) * multiplier;
    }
    if (reported->task == task->id && reported->reasons == reasons)
        return 0;
    *reported = (struct reported_wait){task->id, reasons};
    return core_add_effect(core, EFFECT_WAIT, task->id, NULL);
}
