/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SUBMIT of an array, the only event with the array's own id, has the ids and indices of its
 * tasks. The core has the live tasks, so the log is read only for ended ones.
 */
#include "daemon/array_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policies.h"

static int on_event(void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    struct array_tasks *array = context;
    size_t size = (size_t)event->submit.n_elements * sizeof *array->elements;
    if (event->kind != EVENT_SUBMIT || !event->submit.elements || event->task != array->id)
        return 0;
    array->elements = malloc(size + 1);
    if (!array->elements)
        return -ENOMEM;
    memcpy(array->elements, event->submit.elements, size);
    array->n = event->submit.n_elements;
    array->uid = event->submit.uid;
    array->limit = event->submit.array_limit;
    array->detail = json_incref((json_t *)(uintptr_t)detail);
    return 0;
}

int array_tasks_read(
    struct store *store, uint64_t id, struct fault *fault, struct array_tasks *array)
{
    struct array_tasks read = {.id = id};
    uint64_t first, last;
    if (array->elements && array->id == id)
        return 0;
    int r = store_get_array(store, id, fault, &first, &last);
    if (r == 0)
        r = store_task_events(store, id, policy_find, on_event, &read, fault);
    if (r == 0 && !read.elements)
        r = STORE_NONE;
    if (r != 0) {
        array_tasks_fini(&read);
        return r;
    }
    array_tasks_fini(array);
    *array = read;
    return 0;
}

void array_tasks_fini(struct array_tasks *array)
{
    free(array->elements);
    json_decref(array->detail);
    memset(array, 0, sizeof *array);
}

static uint64_t find_live(const struct core *core, uint64_t array, int index)
{
    const struct task *task = core_next_task(core, array);
    while (task && task->array.id == array && task->array.index < index)
        task = core_next_task(core, task->id);
    return task && task->array.id == array && task->array.index == index ? task->id : 0;
}

uint64_t array_tasks_find(
    const struct core *core, struct store *store, uint64_t id, int index, struct array_tasks *array)
{
    uint64_t task = find_live(core, id, index);
    if (task || array_tasks_read(store, id, NULL, array) != 0)
        return task;
    for (int i = 0; i < array->n && task == 0; i++)
        if (array->elements[i].index == index)
            task = array->elements[i].task;
    return task;
}
