/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating, configuring and destroying a core, and forgetting tasks that have ended.
 *
 * Other settings take effect at once and leave the state as it is. What was derived from the old
 * ones is derived again: the queues of the other order, the shares of the users, the plan of the
 * queue, which blocked tasks may start. The next step makes a pass.
 */
#include "core/core.h"

#include <stdlib.h>
#include <string.h>

#include "core/state/fifo_marks.h"
#include "core/state/learned_model.h"
#include "core/state/state.h"
#include "core/state/sweeps.h"
#include "core/state/tasks.h"
#include "core/state/users.h"
#include "core/state/waiting.h"

struct core *core_create(const struct core_settings *settings)
{
    struct core *core = calloc(1, sizeof *core);
    struct core_users *users = calloc(1, sizeof *users);
    if (!core || !users) {
        free(core);
        free(users);
        return NULL;
    }
    core->users = users;
    core->main_queue.total = &core->n_queued;
    core->settings = *settings;
    core->suspension_costs = settings->suspension_costs;
    core->view.last_placed = -1;
    core_correct_model(core);
    core_set_shares(core, settings->shares);
    return core;
}

static void task_free(struct task *task)
{
    free(task->gpus);
    free((void *)task->request.gpu_kind);
    free(task->after);
    task_end_run(task);
    free(task);
}

static void free_tasks(struct core *core)
{
    for (int i = 0; i < core->n_tasks; i++)
        task_free(core->tasks[i]);
    free(core->tasks);
}

static void free_users(struct core *core)
{
    for (int i = 0; core->users && i < core->users->n; i++)
        free(core->users->list[i]);
    if (core->users) {
        free(core->users->list);
        free(core->users->order);
        free(core->users->factors);
        free(core->users->copies);
    }
    free(core->users);
}

static void gpu_view_fini(struct gpu_view *gpu)
{
    window_fini(&gpu->smact);
    window_fini(&gpu->utilisation);
    window_fini(&gpu->power);
    window_fini(&gpu->pcie);
    free(gpu->residents);
    free(gpu->absent);
    free(gpu->copies);
}

void core_destroy(struct core *core)
{
    if (!core)
        return;
    free_tasks(core);
    free_users(core);
    for (int i = 0; i < core->view.n_gpus; i++)
        gpu_view_fini(&core->view.gpus[i]);
    free(core->view.gpus);
    free(core->group_uses);
    free(core->advances);
    core_free_sweeps(core);
    free(core->on_host.list);
    free(core->on_tasks.list);
    free(core->on_arrays.list);
    free(core->ended.list);
    free(core->openings.list);
    free(core->fifo.free_us);
    free(core->next_fifo.free_us);
    free(core->effects);
    placement_fini(&core->placement);
    free(core->view.open_bytes);
    free(core->view.distances);
    free(core->closed);
    free(core->outlooks);
    free(core->drain_outlooks);
    free(core->wanters);
    free(core);
}

void core_configure(struct core *core, const struct core_settings *settings)
{
    bool begins_to_preempt = settings->preempt && !core->settings.preempt;
    core_change_order(core, settings->order);
    core->settings = *settings;
    if (begins_to_preempt)
        core_doubt_fifo(core);
    core_correct_model(core);
    core_set_shares(core, settings->shares);
    core->planned = (struct planned){0};
    core->plan = (struct queue_plan){PLAN_NONE, 0};
    core->pass_needed = core->is_gate_open = true;
}

void core_set_node_check(struct core *core, const struct node_check *check)
{
    core->node_check = *check;
}

void core_forget(struct core *core, uint64_t id)
{
    int i = core_task_position(core, id);
    if (i == core->n_tasks || core->tasks[i]->id != id ||
        !task_state_is_done(core->tasks[i]->state))
        return;
    uint64_t array = core->tasks[i]->array.id;
    core->n_taking_turns -= core->tasks[i]->request.takes_turns;
    task_free(core->tasks[i]);
    core->n_tasks--;
    memmove(
        &core->tasks[i], &core->tasks[i + 1], (size_t)(core->n_tasks - i) * sizeof *core->tasks);
    core_forget_sweep(core, array);
}
