/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can GPUs serve a task once others have left them, as far as is known now? A GPU that is lost may
 * never return, so only healthy ones count. A task for which the answer is no must not make others
 * wait.
 */
#include "core/ask/servable.h"

#include "core/ask/host_check.h"
#include "core/state/state.h"

bool core_can_serve(const struct core *core, int i, const struct task *task,
    const struct placement *answer, int64_t now_us)
{
    const struct node_check *check = &core->node_check;
    return now_us - core->view.gpus[i].sampled_us <= core->settings.conditions.sample_valid_us &&
           cluster_view_is_available(&core->view, i, task, CLAIMS_NONE, placement_aside(answer)) &&
           !(check->ask && check->ask(check->context, task, i) == NODE_NEVER);
}

/* Settings and the number of CPUs may have changed since it was submitted. */
static bool has_host_for(const struct core *core, const struct task *task)
{
    return core_check_host_request(core, &task->request.host, NULL) == 0;
}

/* `answer`: GPUs that it sets aside do not count; NULL: all do. */
static bool are_enough_gpus(
    const struct core *core, const struct task *task, const struct placement *answer)
{
    int n = 0;
    const uint64_t *set_aside = answer ? placement_aside(answer) : NULL;
    for (int i = 0; i < core->view.n_gpus && n < task->request.gpus; i++)
        n += cluster_view_is_available(&core->view, i, task, CLAIMS_NONE, set_aside);
    return n == task->request.gpus;
}

bool core_can_be_served(const struct core *core, const struct task *task)
{
    return are_enough_gpus(core, task, NULL) && has_host_for(core, task);
}

bool core_waits_for_room(
    const struct core *core, const struct task *task, const struct placement *answer)
{
    return are_enough_gpus(core, task, answer);
}

bool core_shares_kinds(const struct core *core, const struct task *task, const struct task *head)
{
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].id.is_place && cluster_view_is_of_kind(&core->view, i, task) &&
            cluster_view_is_of_kind(&core->view, i, head))
            return true;
    return false;
}
