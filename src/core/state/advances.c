/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of reservations in advance: N GPUs for some users from a time on, for a while. An event
 * adds one or removes it; those that are over are dropped when another one comes. Which GPUs a
 * reservation keeps free is chosen for each task that is to be placed (ask/set_aside.c).
 */
#include "core/state/advances.h"

#include <string.h>

#include "base/array.h"
#include "core/state/state.h"

bool core_is_advance_sound(const struct advance *advance)
{
    return advance->id > 0 && advance->gpus > 0 && advance->gpus <= CORE_ADVANCE_GPUS_MAX &&
           advance->from_us < advance->until_us && advance->n_users > 0 &&
           advance->n_users <= ADVANCE_USERS_MAX;
}

static void remove_advance(struct core *core, size_t i)
{
    core->n_advances--;
    memmove(&core->advances[i], &core->advances[i + 1],
        (core->n_advances - i) * sizeof *core->advances);
}

static int remove_reservation(struct core *core, uint64_t id)
{
    for (size_t i = 0; i < core->n_advances; i++) {
        if (core->advances[i].id != id)
            continue;
        remove_advance(core, i);
        return 0;
    }
    return CORE_NOT_NOW;
}

/* Those that are over are dropped. */
static int add_reservation(struct core *core, const struct advance *advance, int64_t now_us)
{
    if (!core_is_advance_sound(advance) || advance->id <= core->last_advance)
        return CORE_NOT_NOW;
    core->last_advance = advance->id;
    for (size_t i = core->n_advances; i-- > 0;)
        if (core->advances[i].until_us <= now_us)
            remove_advance(core, i);
    return ARRAY_APPEND(core->advances, core->n_advances, core->advances_capacity, *advance);
}

int core_apply_advance(struct core *core, const struct event *event)
{
    core->pass_needed = true;
    return event->kind == EVENT_RESERVE ? add_reservation(core, &event->reserve, event->time_us)
                                        : remove_reservation(core, event->unreserve);
}
