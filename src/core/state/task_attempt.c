/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task has for one attempt only. An attempt begins with a placement and ends with the exit
 * of its process; between, the task may be stopped, moved, or wait for GPU memory. What holds of
 * one attempt is cleared when the next begins; what is added up over all of them (times,
 * suspensions, moves) stays.
 *
 * CPUs and main memory are held from the placement to the end of the attempt, also while the task
 * is suspended: its processes stay in main memory (ask/host_check.c has the rules).
 */
#include "core/state/task_attempt.h"

#include <stdlib.h>

#include "core/state/promise.h"
#include "core/state/residents.h"
#include "core/state/service.h"
#include "core/state/state.h"

void core_take_host(struct core *core, const struct task *task)
{
    core->host_used.cpus += task->request.host.cpus;
    core->host_used.memory_bytes += task->request.host.memory_bytes;
}

void core_return_host(struct core *core, const struct task *task)
{
    core->host_used.cpus -= task->request.host.cpus;
    core->host_used.memory_bytes -= task->request.host.memory_bytes;
}

/* Its record says what probes have cost it. */
static void note_probe(struct task_yield *yield, int64_t now_us)
{
    if (!yield->since_us || yield->reason != YIELD_TO_PROBE)
        return;
    yield->probes++;
    yield->probed_us += now_us > yield->since_us ? now_us - yield->since_us : 0;
    yield->probed_for = yield->to_task;
}

void core_end_stop(struct task *task, int64_t now_us)
{
    struct task_yield *yield = &task->run->yield;
    note_probe(yield, now_us);
    if (yield->since_us && now_us > yield->since_us) {
        yield->stopped_us += now_us - yield->since_us;
        yield->attempt_stopped_us += now_us - yield->since_us;
    }
    yield->since_us = 0;
}

void core_forget_destination(struct task *task)
{
    free(task->run->yield.to_gpus);
    task->run->yield.to_gpus = NULL;
    task->run->yield.n_to_gpus = 0;
}

int core_end_memory_wait(struct core *core, struct task *task, int64_t now_us)
{
    struct memory_wait *wait = &task->run->memory_wait;
    if (wait->bytes == 0)
        return CORE_NOT_NOW;
    wait->waited_us += now_us > wait->since_us ? now_us - wait->since_us : 0;
    wait->bytes = 0;
    wait->is_unconfirmed = false;
    core->n_memory_waits--;
    return 0;
}

void core_begin_attempt(struct task *task)
{
    struct task_yield *yield = &task->run->yield;
    yield->cannot_suspend = yield->cannot_pause = yield->neighbour_failed = false;
    yield->resumed_us = yield->retry_us = yield->relocate_retry_us = yield->attempt_stopped_us = 0;
    yield->failures = yield->context_refusals = 0;
    task->run->memory_wait.n_unpaid = 0;
    core_begin_service(task);
    core_begin_promise(task);
}

void core_end_attempt(struct core *core, struct task *task, int64_t ended_us)
{
    core_end_stop(task, ended_us);
    core_forget_destination(task);
    if (task->queue)
        queue_remove(task);
    task->run->yield.by_user = task->run->yield.is_unused = task->run->yield.is_frozen = false;
    core_remove_context(core, task);
    core_remove_copy(core, task);
    task->run->yield.bytes = task->run->yield.context_bytes = READING_NONE;
    task->run->yield.has_ranks = false;
    core_end_memory_wait(core, task, ended_us);
}

void core_begin_ending(struct task *task, int64_t now_us)
{
    if (task->state == TASK_SUSPENDED && task->queue)
        queue_remove(task);
    if (task->state == TASK_PAUSED)
        core_end_stop(task, now_us);
    if (task->state == TASK_PAUSED || task->state == TASK_RUNNING)
        task_move(task, TASK_ENDING);
}
