/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claims that stand for several GPUs together (claim.h): the core keeps for which task GPUs are
 * drained or reserved, and ends the claim on all of them at once, by whatever event makes it wrong.
 * The stages of a pass set them (pass/recovery.c, pass/head_reservation.c). A claim of a task on
 * its own GPUs, EXCLUSIVE or CLOSED, ends with its residence (residents.c).
 */
#include "core/state/claims.h"

#include "core/state/state.h"

void core_release_reservation(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->reserved_for; i++) {
        claims_drop(core->view.gpus[i].claims, CLAIMS_HEAD);
        core->view.gpus[i].is_choice_of_head = false;
    }
    core->n_choices += core->reserved_for != 0;
    core->reserved_for = 0;
}

static bool keep_for(struct core *core, const struct task *task, enum claim_kind kind)
{
    const struct task_yield *yield = &task->run->yield;
    if (task_context_gpu(task) < 0)
        return false;
    for (int i = 0; i < yield->n_context_gpus; i++) {
        uint64_t *claim = &core->view.gpus[yield->context_gpus[i]].claims[kind];
        *claim = *claim ? *claim : task->id;
    }
    core->any_return = true;
    return true;
}

bool core_keep_for_return(struct core *core, const struct task *task)
{
    return keep_for(core, task, CLAIM_RETURN);
}

bool core_keep_for_recall(struct core *core, const struct task *task)
{
    return keep_for(core, task, CLAIM_RECALL);
}

void core_release_returns(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->any_return; i++)
        claims_drop(core->view.gpus[i].claims, CLAIMS_RETURN);
    core->any_return = false;
}

void core_stop_draining(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->drained_for; i++)
        claims_drop(core->view.gpus[i].claims, CLAIMS_DRAIN);
    core->drained_for = 0;
}

void core_forget_drains(struct core *core, uint64_t id)
{
    if (core->drained_for == id)
        core_stop_draining(core);
}
