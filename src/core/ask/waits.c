/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task may wait for besides a GPU: its next time slot, a sample of a GPU whose residents
 * have just changed, the moment at which it may begin.
 */
#include "core/ask/waits.h"

#include "base/top_k.h"
#include "core/questions.h"
#include "core/state/state.h"
#include "core/state/waiting.h"

bool core_waits_for_turn(const struct task *task)
{
    enum yield_reason reason = task->run->yield.reason;
    bool is_in_turn = reason == YIELD_TO_SLOT ||
                      (reason == YIELD_TO_MEMORY && task->request.takes_turns);
    return task->state == TASK_SUSPENDED && task->queue && is_in_turn;
}

bool core_is_turn_of(const struct task *task, const struct task *head)
{
    if (!head || task->request.priority != head->request.priority)
        return !head || task->request.priority > head->request.priority;
    return task->run->yield.since_us <= head->queued_us;
}

bool core_awaits_sample(const struct core *core, const struct task *head)
{
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        if (gpu->health == VIEW_OK && gpu->sampled_us < gpu->mix_since_us &&
            cluster_view_suits(&core->view, i, head))
            return true;
    }
    return false;
}

static bool begins_earlier(const void *a, const void *b, const void *context)
{
    (void)context;
    const struct task *one = *(const struct task *const *)a,
                      *other = *(const struct task *const *)b;
    return one->request.begin_us < other->request.begin_us;
}

int core_list_begins(
    const struct core *core, int64_t now_us, const struct task **ret_tasks, int most)
{
    size_t n = 0;
    for (const struct task *task = core->blocked_queue.first; task; task = task->next)
        if (task->request.begin_us > now_us)
            n = top_k_insert(
                ret_tasks, n, (size_t)most, sizeof *ret_tasks, &task, begins_earlier, NULL);
    return (int)n;
}

bool core_waits_for_begin_only(const struct core *core, const struct task *task)
{
    return task->n_after == 0 && task->array.limit == 0 &&
           !(task->request.limited && core_has_user_limits(core));
}
