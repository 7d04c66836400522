/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspended tasks come before the main queue: they have been started already. The oldest is resumed
 * first; while it finds no GPU, younger ones may, but no task of the main queue starts, unless what
 * it waits for is a service (state/service.c), or that its GPU is shared by fewer for a while
 * (state/crowding.c). A task whose context has stayed on its GPU, as of a client of MPS, comes back
 * only there: then tasks of the main queue start on the other GPUs.
 */
#include "core/pass/suspended_pass.h"

#include "core/ask/placement.h"
#include "core/ask/servable.h"
#include "core/ask/waits.h"
#include "core/decide/give_way.h"
#include "core/state/claims.h"
#include "core/state/promise.h"
#include "core/state/service.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* Chosen, to keep a pass short: suspended tasks that are tried in a pass. */
#define RESUME_TRIES_MAX 64

/* Too many shared its GPU, which takes none for a while. Others start elsewhere meanwhile: where it
 * cannot, smaller ones may. */
static bool waits_for_fewer(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task *slowest = core_find_task(core, task->run->yield.to_task);
    return task->run->yield.reason == YIELD_TO_SPEED && slowest && slowest->state == TASK_RUNNING &&
           now_us < core_promise_opens_us(slowest);
}

int core_schedule_suspended(struct core *core, int64_t now_us, bool *ret_waits)
{
    struct task *next;
    int r = 0, tries = RESUME_TRIES_MAX;
    *ret_waits = false;
    for (struct task *task = core->suspended_queue.first; task && r == 0 && tries--; task = next) {
        next = task->next;
        if (task->run->yield.retry_us > now_us || core_waits_for_turn(task))
            continue;
        if (core_try_resumption(core, task, true, now_us, &core->placement) == PLACE_NOW)
            r = core_resume_task(core, task, core->placement.gpus, now_us);
        else
            *ret_waits |= core_waits_for_room(core, task, &core->placement) &&
                          !core_waits_for_service(task) && !waits_for_fewer(core, task, now_us) &&
                          !core_keep_for_return(core, task);
    }
    return r;
}
