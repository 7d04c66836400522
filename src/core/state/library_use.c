/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do a resident's allocations wait where memory is short? They do if the preloaded library was
 * given to its processes, and works in them. A container may not have its file, and a program that
 * is linked statically ignores it: that shows once a process has GPU memory, seconds after the
 * start. Until then it counts what was last seen of the same user's processes:
 *
 *     user's processes last seen     the task's own       its allocations
 *     without the library            none yet             are expected to fail
 *     none yet, or with the library  none yet             are expected to wait
 *     any                            with the library     wait
 *     any                            one without          fail
 *
 * From the placement on it is expected that the library is given, as the task and the setting say,
 * until STARTED says it: the tasks of an array are placed in one pass. Were each waited for, all
 * would go to the GPU whose first task has started first.
 *
 * Before a process of the user was seen, the dynamic linker is trusted: most trainings are Python,
 * and their imports take longer than all else in a start. Were the user's first task waited for, an
 * array of short trainings would be that much later. Where it has no library after all, its first
 * process says so, and at worst a task that began beside it runs out of memory and is run again.
 *
 * Samples are not in the log: after a restart the first process that is seen says it anew.
 */
#include "core/state/library_use.h"

#include "core/state/state.h"

void core_expect_library(struct resident *resident)
{
    bool is_seen = resident->hooked + resident->unhooked > 0;
    resident->allocations_wait = resident->has_library &&
                                 (is_seen ? resident->unhooked == 0
                                          : resident->user && !resident->user->is_unhooked);
}

static void note_of_user(struct core *core, struct core_user *user, bool is_unhooked)
{
    user->is_unhooked = is_unhooked;
    for (int i = 0; i < core->view.n_gpus; i++)
        for (int k = 0; k < core->view.gpus[i].n_residents; k++)
            if (core->view.gpus[i].residents[k].user == user)
                core_expect_library(&core->view.gpus[i].residents[k]);
    core->pass_needed |= !is_unhooked && core->settings.conditions.starting_max > 0;
}

void core_note_library_use(
    struct core *core, struct resident *resident, const struct task_memory *listed)
{
    bool could_wait = resident->allocations_wait;
    resident->hooked = listed->hooked;
    resident->unhooked = listed->unhooked;
    resident->carried = listed->carried;
    core_expect_library(resident);
    core->pass_needed |= resident->allocations_wait && !could_wait &&
                         core->settings.conditions.starting_max > 0;
    bool is_seen = resident->has_library && listed->hooked + listed->unhooked > 0;
    if (is_seen && resident->user && resident->user->is_unhooked != (listed->unhooked > 0))
        note_of_user(core, resident->user, listed->unhooked > 0);
}
