/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the state, for drivers and for explanations to read. They stay valid as questions.h
 * says.
 */
#include "core/questions.h"

#include "core/state/fifo_marks.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

const struct node_check *core_node_check(const struct core *core)
{
    return core->node_check.ask ? &core->node_check : NULL;
}

const struct task_queue *core_recovery_queue(const struct core *core)
{
    return &core->recovery_queue;
}

const struct task_queue *core_suspended_queue(const struct core *core)
{
    return &core->suspended_queue;
}

const struct task_queue *core_blocked_queue(const struct core *core)
{
    return &core->blocked_queue;
}

bool core_wants_pass(const struct core *core)
{
    return core->pass_needed || core->recovery_queue.first || core_is_fifo_marked(core);
}

const struct cluster_view *core_view(const struct core *core)
{
    return &core->view;
}

const struct suspension_cost *core_stop_cost(
    const struct core *core, int gpu, enum suspension_way way)
{
    if (gpu >= 0) {
        const struct suspension_cost *own = suspension_costs_of(
            &core->view.gpus[gpu].stop_costs, way);
        if (suspension_cost_is_known(own))
            return own;
    }
    return suspension_costs_of(&core->suspension_costs, way);
}

const struct core_settings *core_get_settings(const struct core *core)
{
    return &core->settings;
}

const struct host_resources *core_host_used(const struct core *core)
{
    return &core->host_used;
}

const struct effect *core_effects(const struct core *core, int *ret_n)
{
    *ret_n = core->n_effects;
    return core->effects;
}

const struct task *core_task(const struct core *core, uint64_t id)
{
    return core_find_task(core, id);
}

const struct task *core_next_task(const struct core *core, uint64_t id)
{
    int i = core_task_position(core, id + 1);
    return i < core->n_tasks ? core->tasks[i] : NULL;
}
