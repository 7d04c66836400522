/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a submission: of one task, or of an array, whose tasks have rising ids above the array's
 * own. The core keeps its own copy of what the event points to.
 */
#include "core/state/apply_submit.h"

#include <errno.h>
#include <string.h>

#include "core/state/dependents.h"
#include "core/state/state.h"
#include "core/state/sweeps.h"
#include "core/state/tasks.h"
#include "core/state/users.h"
#include "core/state/waiting.h"

/* `array`: of the task */
static int add_task(
    struct core *core, const struct event *event, uint64_t id, struct task_array array)
{
    if (!core_add_user(core, event->submit.uid, event->time_us))
        return -ENOMEM;
    struct task *task = core_add_task(core, id);
    if (!task)
        return -ENOMEM;
    task->uid = event->submit.uid;
    task->array = array;
    task->request = event->submit.request;
    task->request.gpu_kind = NULL;
    if (event->submit.request.gpu_kind &&
        !(task->request.gpu_kind = strdup(event->submit.request.gpu_kind)))
        return -ENOMEM;
    core->n_taking_turns += task->request.takes_turns;
    core->any_time_limit |= task->request.time_limit_us > 0;
    core->view.has_services |= task->request.service.is_service;
    core->view.has_promises |= task->request.slowdown_max.valid;
    if (core_take_dependencies(core, task, id - event->task) < 0)
        return -ENOMEM;
    task->submitted_us = task->queued_us = event->time_us;
    task->state = event->submit.held ? TASK_HELD : core_is_gated(task) ? TASK_BLOCKED : TASK_QUEUED;
    if (!event->submit.held)
        core_start_waiting(core, task, event->time_us);
    return 0;
}

/* Neither a task nor an array has the id. The tasks of an array follow its id: a task of that id
 * would be taken for the first of them. */
static bool is_id_new(const struct core *core, uint64_t id)
{
    int next = core_task_position(core, id + 1);
    bool is_array = next < core->n_tasks && core->tasks[next]->array.id == id;
    return !is_array && !core_find_task(core, id);
}

/* Are the tasks of the array new, by rising id, and above the array? */
static bool are_elements_new(const struct core *core, const struct event *event)
{
    uint64_t last = event->task;
    for (int i = 0; i < event->submit.n_elements; i++) {
        uint64_t id = event->submit.elements[i].task;
        if (id <= last || !is_id_new(core, id))
            return false;
        last = id;
    }
    return true;
}

int core_apply_submit(struct core *core, const struct event *event)
{
    if (!is_id_new(core, event->task) || !are_elements_new(core, event))
        return CORE_NOT_NOW;
    const struct task_request *request = &event->submit.request;
    if (event->task == 0 || request->gpus < 0 ||
        !core_may_depend(event->task, request->after, request->n_after))
        return CORE_NOT_NOW;
    if (!event->submit.elements)
        return add_task(core, event, event->task, (struct task_array){0});
    int r = event->submit.n_elements > 0 ? core_begin_sweep(core, event->task, &event->submit.stop)
                                         : 0;
    for (int i = 0; i < event->submit.n_elements && r == 0; i++) {
        const struct array_element *element = &event->submit.elements[i];
        r = add_task(core, event, element->task,
            (struct task_array){event->task, element->index, event->submit.array_limit});
    }
    return r;
}
