/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where may a task be placed now? Its policy answers (core/policy.h), from a query that has all it
 * may know. The answer is found node by node, then GPU by GPU (node_choice.h). CPUs and main memory
 * of the server have to suffice as well.
 *
 * A task that ran out of GPU memory requires more free memory, or GPUs without other tasks, where
 * those that hold no memory and compute nothing do not count (state/recovery_need.c). A suspended
 * task is placed as if it waited, with the memory that it held, less its context where that has
 * stayed.
 */
#include "core/ask/placement.h"

#include <math.h>

#include "core/ask/host_check.h"
#include "core/ask/set_aside.h"
#include "core/node_choice.h"
#include "core/questions.h"
#include "core/state/recovery_need.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

const struct policy *core_task_policy(const struct core *core, const struct task *task)
{
    return task->request.policy ? task->request.policy : core->settings.policy;
}

/* Chosen: half of the clients that an MPS server takes; of more tasks it makes no difference. */
enum { ARRAY_LEFT_MAX = 24 };

/* How many tasks of its array wait in the queue from the task on. Returns 0 where it is of none,
 * and beyond ARRAY_LEFT_MAX. */
static int count_left(const struct core *core, const struct task *task)
{
    uint64_t array = task->array.id;
    int first = array ? core_task_position(core, task->id) : 0;
    int last = first + ARRAY_LEFT_MAX;
    if (!array || (last < core->n_tasks && core->tasks[last]->array.id == array))
        return 0;
    int n = 0;
    for (int i = first; i < core->n_tasks && core->tasks[i]->array.id == array; i++)
        n += core->tasks[i]->state == TASK_QUEUED;
    return n;
}

struct placement_query core_query(const struct core *core, const struct task *task,
    const uint64_t *closed, int64_t now_us, struct placement *ret_answer)
{
    core_set_aside(core, task, closed, now_us, ret_answer);
    const struct task *head = core->reserved_for ? core_find_task(core, core->reserved_for) : NULL;
    const struct recovery_need recovery = core_recovery_need(core, task);
    const bool is_exclusive = task->request.exclusive ||
                              core_task_policy(core, task)->exclusive_gpus;
    return (struct placement_query){
        .view = &core->view,
        .conditions = &core->settings.conditions,
        .settings = &core->settings,
        .task = task,
        .policy = core_task_policy(core, task),
        .head = head,
        .head_policy = head ? core_task_policy(core, head) : NULL,
        .outlooks = core->has_outlooks ? core->outlooks : NULL,
        .array_left = count_left(core, task),
        .now_us = now_us,
        .idle_only = is_exclusive || recovery.is_alone,
        .unused_is_idle = recovery.is_alone && !is_exclusive,
        .recovery_free_bytes = recovery.free_bytes,
        .passes_reservation = task->queue && task->state != TASK_QUEUED,
        .node_check = core_node_check(core),
        .set_aside = placement_aside(ret_answer),
    };
}

bool core_wants_exclusive_gpus(const struct core *core, const struct task *task)
{
    return task->request.exclusive || core_task_policy(core, task)->exclusive_gpus ||
           (task->oom_count > 1 && core_recovery_need(core, task).is_alone);
}

/* How GPUs are searched for, other than for their verdicts among all. */
enum search { SEARCH_ALL, SEARCH_IDLE, SEARCH_UNEXPLAINED };

static enum placement_answer try_gpus(const struct core *core, const struct task *task,
    const uint64_t *closed, enum search search, int64_t now_us, struct placement *ret_answer)
{
    struct placement_query query = core_query(core, task, closed, now_us, ret_answer);
    query.is_unexplained = search == SEARCH_UNEXPLAINED;
    query.idle_only |= search == SEARCH_IDLE;
    struct verdict host = core_check_host_turn(core, task);
    if (host.kind != VERDICT_FITS) {
        for (int i = 0; i < core->view.n_gpus; i++)
            ret_answer->verdicts[i] = host;
        return PLACE_WAIT;
    }
    return node_choice_choose(
        core_task_policy(core, task), &query, ret_answer->gpus, ret_answer->verdicts);
}

enum placement_answer core_try_gpus(
    const struct core *core, const struct task *task, int64_t now_us, struct placement *ret_answer)
{
    return try_gpus(core, task, NULL, SEARCH_ALL, now_us, ret_answer);
}

enum placement_answer core_try_idle_gpus(
    const struct core *core, const struct task *task, int64_t now_us, struct placement *ret_answer)
{
    return try_gpus(core, task, NULL, SEARCH_IDLE, now_us, ret_answer);
}

bool core_finds_gpus(const struct core *core, const struct task *task, const uint64_t *closed,
    int64_t now_us, struct placement *ret_answer)
{
    return try_gpus(core, task, closed, SEARCH_UNEXPLAINED, now_us, ret_answer) == PLACE_NOW;
}

int64_t core_restore_spare_bytes(const struct core *core)
{
    int64_t margin = core->settings.conditions.margin_bytes;
    return margin < SUSPENSION_RESTORE_SPARE_BYTES ? SUSPENSION_RESTORE_SPARE_BYTES - margin : 0;
}

struct task core_as_waiting(const struct core *core, const struct task *task)
{
    struct task waiting = *task;
    const struct task_yield *yield = &task->run->yield;
    struct need *need = &waiting.request.need;
    bool is_there = task_context_gpu(task) >= 0;
    bool is_restored = task->state == TASK_SUSPENDED && !is_there;
    int64_t spare = is_restored ? core_restore_spare_bytes(core) : 0;
    double there = is_there ? reading_assume(yield->context_bytes, 0) : 0;
    if (yield->bytes.valid)
        *need = (struct need){NEED_ESTIMATED, (int64_t)fmax(0, yield->bytes.value - there) + spare};
    else if (is_restored && need->kind < NEED_ESTIMATED)
        *need = (struct need){NEED_ESTIMATED, SUSPENSION_CONTEXT_BYTES + spare};
    waiting.request.exclusive |= task->exclusive;
    return waiting;
}

double core_needed_bytes(const struct core *core, const struct task *task)
{
    const struct conditions *conditions = &core->settings.conditions;
    if (task->run->memory_wait.bytes)
        return (double)(task->run->memory_wait.bytes + conditions->margin_bytes);
    const struct need need = core_as_waiting(core, task).request.need;
    return need.kind >= NEED_ESTIMATED ? (double)need.bytes + (double)conditions->margin_bytes
                                       : (double)conditions->min_free_bytes;
}

/* Are no others on the GPU than contexts that stay? */
static bool is_left_to(const struct core *core, const struct gpu_view *gpu, const struct task *task)
{
    bool is_left = !gpu->n_residents && !gpu->n_copies;
    for (int i = 0; i < gpu->n_absent && is_left; i++)
        is_left = gpu->absent[i].task == task->id ||
                  task_is_context_stuck(core_find_task(core, gpu->absent[i].task));
    return is_left;
}

bool core_is_left_to_stuck(const struct core *core, const struct task *task)
{
    return task_is_context_stuck(task) &&
           is_left_to(core, &core->view.gpus[task_context_gpu(task)], task);
}

/* Has it a context on a GPU where one stays that the driver does not take? */
static bool is_beside_stuck(const struct core *core, const struct task *task)
{
    int at = task_context_gpu(task);
    bool is_any = false;
    for (int i = 0; at >= 0 && i < core->view.gpus[at].n_absent; i++)
        is_any |= task_is_context_stuck(core_find_task(core, core->view.gpus[at].absent[i].task));
    return is_any;
}

/* CORE_EXTERNAL_LASTS_US describes the rule. */
static enum placement_answer try_beside_lasting(
    const struct core *core, const struct placement_query *query, struct placement *ret_answer)
{
    struct conditions conditions = *query->conditions;
    struct task task = *query->task;
    struct placement_query each = *query;
    conditions.margin_bytes = 0;
    if (task_context_gpu(&task) < 0)
        task.request.need.bytes -= core_restore_spare_bytes(core);
    each.conditions = &conditions;
    each.task = &task;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        each.first_gpu = i;
        each.end_gpu = i + 1;
        if (is_left_to(core, gpu, &task) &&
            query->policy->choose(&each, ret_answer->gpus, ret_answer->verdicts) == PLACE_NOW)
            return PLACE_NOW;
    }
    return PLACE_WAIT;
}

enum placement_answer core_try_resumption(const struct core *core, const struct task *task,
    bool passes_reservation, int64_t now_us, struct placement *ret_answer)
{
    struct task waiting = core_as_waiting(core, task);
    struct placement_query query = core_query(core, &waiting, NULL, now_us, ret_answer);
    query.passes_reservation = passes_reservation;
    enum placement_answer answer = node_choice_choose(
        core_task_policy(core, task), &query, ret_answer->gpus, ret_answer->verdicts);
    bool is_restored = task->run->yield.bytes.valid && task_context_gpu(task) < 0;
    bool has_waited = is_restored && now_us - task->run->yield.since_us >= CORE_EXTERNAL_LASTS_US;
    if (answer == PLACE_WAIT && task->request.gpus == 1 &&
        (has_waited || is_beside_stuck(core, task)))
        answer = try_beside_lasting(core, &query, ret_answer);
    return task->run->yield.is_relocating ? PLACE_WAIT : answer;
}

bool core_backfills(const struct core *core, const struct task *head)
{
    return core->settings.backfill && core_task_policy(core, head)->reserve;
}

/* Chosen, likewise: verdicts on GPUs for all tasks that are tried for backfill in a pass. */
#define BACKFILL_VERDICTS_MAX (16 * CORE_BACKFILL_TRIES_MAX)

/* Chosen: tasks that are tried for backfill in a large cluster, too. */
#define BACKFILL_TRIES_MIN 8

int core_backfill_tries(const struct core *core)
{
    int tries = BACKFILL_VERDICTS_MAX / (core->view.n_gpus + 1);
    if (tries < BACKFILL_TRIES_MIN)
        return BACKFILL_TRIES_MIN;
    return tries < CORE_BACKFILL_TRIES_MAX ? tries : CORE_BACKFILL_TRIES_MAX;
}
