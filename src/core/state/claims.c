/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs that are kept from tasks. They are marked in the view, so that policies see it; the marks
 * are derived from the state and the samples, are in no event, and are lost in a restart without
 * harm.
 *
 *     drained_for     the first recovering task: its GPUs become idle, so that it starts even when
 *                     the main queue never runs dry (pass/recovery.c)
 *     reserved_for    the head of the main queue: tasks behind it start there only where that does
 *                     not delay it (pass/head_reservation.c)
 *
 * Here they are removed, by whatever event makes them wrong.
 */
#include "core/state/claims.h"

#include "core/state/state.h"

void core_release_reservation(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->reserved_for; i++) {
        core->view.gpus[i].reserved_for = 0;
        core->view.gpus[i].is_choice_of_head = false;
    }
    core->reserved_for = 0;
}

void core_stop_draining(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->drained_for; i++)
        core->view.gpus[i].drained_for = 0;
    core->drained_for = 0;
}

void core_forget_drains(struct core *core, uint64_t id)
{
    if (core->drained_for == id)
        core_stop_draining(core);
}
