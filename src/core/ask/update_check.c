/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can a change of a task's request be applied now? Apart from what hinders it by the state of the
 * task (state/apply_update.c), the changed request has to be one that can ever be met here, and a
 * task that has started may get only CPUs and main memory that are free.
 */
#include "core/questions.h"

#include <errno.h>
#include <stdlib.h>

#include "core/ask/host_check.h"
#include "core/state/apply_update.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* The further part that a task may get: at most what is free. */
static int check_more_host(const struct core *core, const struct task *task,
    const struct task_update *update, struct fault *fault)
{
    struct task more = *task;
    struct host_resources wanted = core_changed_host(task, update);
    more.request.host.cpus = wanted.cpus - task->request.host.cpus;
    more.request.host.memory_bytes = wanted.memory_bytes - task->request.host.memory_bytes;
    struct verdict verdict = core_check_host(core, &more);
    if (verdict.kind == VERDICT_HOST_CPUS)
        return fault_set(fault, EBUSY, "task %s: %.0f more CPUs are free, it would need %.0f",
            task_label(task).text, verdict.have, verdict.limit);
    if (verdict.kind == VERDICT_HOST_MEMORY)
        return fault_set(fault, EBUSY, "task %s: too little main memory is free beside what it has",
            task_label(task).text);
    return 0;
}

int core_check_update(
    const struct core *core, uint64_t id, const struct task_update *update, struct fault *fault)
{
    const struct task *task = core_find_task(core, id);
    const char *hindrance = task ? core_update_hindrance(task, update) : "it has ended";
    if (hindrance)
        return fault_set(
            fault, task ? EBUSY : ENOENT, "task %s: %s", core_task_label(core, id).text, hindrance);
    if (update->sets_host && !core_awaits_start(task)) {
        int r = check_more_host(core, task, update, fault);
        if (r < 0)
            return r;
    }
    if (!update->sets_need && !update->sets_host)
        return 0;
    struct task_request request = task->request;
    request.host = core_changed_host(task, update);
    request.expect = (struct expectation){0}; /* not changed, and perhaps an estimate */
    if (update->sets_need)
        request.need = update->need;
    return core_check_request(core, &request, fault);
}
