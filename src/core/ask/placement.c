/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where may a task be placed now? Its policy answers (core/policy.h), from a query that has all it
 * may know. The answer is found node by node, then GPU by GPU (node_choice.h). CPUs and main memory
 * of the server have to suffice as well.
 *
 * A task that ran out of GPU memory requires more free memory for each attempt, and in the end GPUs
 * without other tasks. A suspended task is placed as if it waited, with the memory that it held.
 */
#include "core/ask/placement.h"

#include "core/ask/host_check.h"
#include "core/ask/set_aside.h"
#include "core/node_choice.h"
#include "core/questions.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

const struct policy *core_task_policy(const struct core *core, const struct task *task)
{
    return task->request.policy ? task->request.policy : core->settings.policy;
}

/*
 * The free memory that a task needs on each GPU for its next attempt after it ran out of memory
 * (dissertation, section 7.2): the free memory at its start, or its estimate, and a step more for
 * every crash. Returns 0 when it needs GPUs without other tasks, as for the last attempt.
 */
static double recovery_free_bytes(const struct core *core, const struct task *task)
{
    const struct core_settings *settings = &core->settings;
    const struct need *need = &task->request.need;
    bool is_last = task->oom_count >= settings->recoveries_max;
    if (task->oom_count == 0 || is_last || !settings->recovery_step_bytes ||
        !task->run->free_bytes.valid)
        return 0;
    double before = task->run->free_bytes.value;
    if (need->kind >= NEED_ESTIMATED && (double)need->bytes > before)
        before = (double)need->bytes;
    return before + (double)settings->recovery_step_bytes * task->oom_count;
}

static bool recovers_alone(const struct core *core, const struct task *task)
{
    return task->oom_count > 0 && recovery_free_bytes(core, task) <= 0;
}

struct placement_query core_query(const struct core *core, const struct task *task,
    const uint64_t *closed, int64_t now_us, struct placement *ret_answer)
{
    core_set_aside(core, task, closed, now_us, ret_answer);
    const struct task *head = core->reserved_for ? core_find_task(core, core->reserved_for) : NULL;
    return (struct placement_query){
        .view = &core->view,
        .conditions = &core->settings.conditions,
        .settings = &core->settings,
        .task = task,
        .policy = core_task_policy(core, task),
        .head = head,
        .head_policy = head ? core_task_policy(core, head) : NULL,
        .outlooks = core->has_outlooks ? core->outlooks : NULL,
        .now_us = now_us,
        .idle_only = task->request.exclusive || recovers_alone(core, task) ||
                     core_task_policy(core, task)->exclusive_gpus,
        .recovery_free_bytes = recovery_free_bytes(core, task),
        .passes_reservation = task->queue && task->state != TASK_QUEUED,
        .node_check = core_node_check(core),
        .set_aside = placement_aside(ret_answer),
    };
}

bool core_wants_exclusive_gpus(const struct core *core, const struct task *task)
{
    return task->request.exclusive || core_task_policy(core, task)->exclusive_gpus ||
           (task->oom_count > 1 && recovers_alone(core, task));
}

static enum placement_answer try_gpus(const struct core *core, const struct task *task,
    const uint64_t *closed, bool is_unexplained, int64_t now_us, struct placement *ret_answer)
{
    struct placement_query query = core_query(core, task, closed, now_us, ret_answer);
    query.is_unexplained = is_unexplained;
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
    return try_gpus(core, task, NULL, false, now_us, ret_answer);
}

bool core_finds_gpus(const struct core *core, const struct task *task, const uint64_t *closed,
    int64_t now_us, struct placement *ret_answer)
{
    return try_gpus(core, task, closed, true, now_us, ret_answer) == PLACE_NOW;
}

struct task core_as_waiting(const struct task *task)
{
    struct task waiting = *task;
    if (task->run->yield.bytes.valid)
        waiting.request.need = (struct need){NEED_ESTIMATED, (int64_t)task->run->yield.bytes.value};
    waiting.request.exclusive |= task->exclusive;
    return waiting;
}

enum placement_answer core_try_resumption(const struct core *core, const struct task *task,
    bool passes_reservation, int64_t now_us, struct placement *ret_answer)
{
    struct task waiting = core_as_waiting(task);
    struct placement_query query = core_query(core, &waiting, NULL, now_us, ret_answer);
    query.passes_reservation = passes_reservation;
    return node_choice_choose(
        core_task_policy(core, task), &query, ret_answer->gpus, ret_answer->verdicts);
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
