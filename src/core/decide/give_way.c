/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides that a task gives way or computes again: the event, and the effect that carries it out
 * (suspension.h has the states, state/apply_yield.c applies the events). Stages of a pass and
 * commands of users choose the task; here is only how it is done.
 *
 * A task is suspended if NVIDIA's driver can do that, and otherwise paused.
 */
#include "core/decide/give_way.h"

#include "core/ask/context_place.h"
#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/ask/neighbour.h"
#include "core/ask/placement.h"
#include "core/decide/effects.h"
#include "core/state/claims.h"
#include "core/state/state.h"

static int decide_effect(struct core *core, const struct event *event, enum effect_kind effect)
{
    int r = core_decide(core, event);
    return r < 0 ? r : core_add_effect(core, effect, event->task, NULL);
}

/* What NVIDIA's driver reports, in whole bytes. It lists a process before it has memory: 0 is no
 * answer. */
static struct reading whole_bytes(struct reading bytes)
{
    return bytes.valid && bytes.value >= 1 ? reading_of((double)(int64_t)bytes.value)
                                           : READING_NONE;
}

int core_stop_task(struct core *core, const struct task *task, enum yield_reason reason,
    uint64_t to_task, int64_t now_us)
{
    /* Where the GPU's time is needed, not its memory, what cannot be suspended now is paused. */
    bool has_failed = yield_is_for_time(reason) &&
                      (task->run->yield.failures > 0 || !core_has_copy_room(core, task));
    bool may_pause = reason == YIELD_TO_USER ? core->settings.can_pause
                                             : core_may_pause(core, task, now_us);
    bool can_suspend = core_can_suspend(core, task) && !(has_failed && may_pause);
    struct event event = {.kind = can_suspend ? EVENT_SUSPENDING : EVENT_PAUSE,
        .time_us = now_us,
        .task = task->id,
        .yield = {.reason = reason, .to_task = to_task}};
    event.yield.keeps_context = can_suspend && core_context_stays(core, task, reason, to_task);
    if (!can_suspend && !may_pause)
        return 0;
    int neighbour = can_suspend ? core_find_neighbour(core, task, reason, to_task, now_us) : -1;
    if (neighbour >= 0) {
        event.yield.gpus = &neighbour;
        event.yield.n = 1;
        event.yield.bytes = whole_bytes(core_bytes_of(core, task));
    }
    return decide_effect(core, &event, can_suspend ? EFFECT_SUSPEND : EFFECT_PAUSE);
}

int core_pause_for_probe(
    struct core *core, const struct task *task, uint64_t promised, int64_t until_us, int64_t now_us)
{
    struct event event = {.kind = EVENT_PAUSE,
        .time_us = now_us,
        .task = task->id,
        .yield = {.reason = YIELD_TO_PROBE, .to_task = promised, .until_us = until_us}};
    return decide_effect(core, &event, EFFECT_PAUSE);
}

int core_move_task(struct core *core, const struct task *task, const int *gpus,
    struct reading bytes, enum yield_reason reason, uint64_t to_task, int64_t now_us)
{
    struct event event = {.kind = EVENT_MOVING,
        .time_us = now_us,
        .task = task->id,
        .yield = {.gpus = gpus,
            .n = task->n_gpus,
            .reason = reason,
            .to_task = to_task,
            .bytes = whole_bytes(bytes)}};
    return decide_effect(core, &event, EFFECT_MOVE);
}

int core_relocate_copy(struct core *core, const struct task *task, int64_t now_us)
{
    struct event event = {.kind = EVENT_RELOCATING, .time_us = now_us, .task = task->id};
    return decide_effect(core, &event, EFFECT_RELOCATE);
}

int core_continue_task(struct core *core, const struct task *task, int64_t now_us)
{
    struct event event = {.kind = EVENT_CONTINUE, .time_us = now_us, .task = task->id};
    return decide_effect(core, &event, EFFECT_CONTINUE);
}

/* A process that is being suspended, resumed or moved is ended after the answer; a frozen one could
 * not end by itself. */
int core_kill_task(struct core *core, const struct task *task)
{
    if (task_state_is_changing(task->state))
        return 0;
    int r = task->run->yield.is_frozen ? core_add_effect(core, EFFECT_CONTINUE, task->id, NULL) : 0;
    return r < 0 ? r : core_add_effect(core, EFFECT_KILL, task->id, NULL);
}

/* The daemon may have ended before it carried out the effect of the state, or after. */
int core_repeat_effect(struct core *core, const struct task *task)
{
    static const int effects[TASK_STATES] = {
        [TASK_PAUSED] = EFFECT_PAUSE,
        [TASK_SUSPENDING] = EFFECT_SUSPEND,
        [TASK_RESUMING] = EFFECT_RESUME,
        [TASK_MOVING] = EFFECT_MOVE,
    };
    if (effects[task->state])
        return core_add_effect(core, (enum effect_kind)effects[task->state], task->id, NULL);
    if (task->run->yield.is_relocating)
        return core_add_effect(core, EFFECT_RELOCATE, task->id, NULL);
    bool may_be_frozen = task->state == TASK_RUNNING && task->run->yield.pauses;
    return may_be_frozen ? core_add_effect(core, EFFECT_CONTINUE, task->id, NULL) : 0;
}

int core_resume_task(struct core *core, const struct task *task, const int *gpus, int64_t now_us)
{
    struct event event = {.kind = EVENT_RESUMING,
        .time_us = now_us,
        .task = task->id,
        .yield = {.gpus = gpus, .n = task->request.gpus}};
    core_release_reservation(core); /* the GPUs predicted to admit the head first may be others */
    return decide_effect(core, &event, EFFECT_RESUME);
}

int core_try_resume(struct core *core, const struct task *task, bool passes_reservation,
    int64_t now_us, struct placement *ret_answer)
{
    if (task->run->yield.retry_us > now_us ||
        core_try_resumption(core, task, passes_reservation, now_us, ret_answer) != PLACE_NOW)
        return 0;
    return core_resume_task(core, task, ret_answer->gpus, now_us);
}
