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
    struct store *store, uint64_t id, struct fault *fault, struct array_tasks *ret_array)
{
    uint64_t first, last;
    *ret_array = (struct array_tasks){.id = id};
    int r = store_get_array(store, id, fault, &first, &last);
    if (r == 0)
        r = store_task_events(store, id, policy_find, on_event, ret_array, fault);
    return r == 0 && !ret_array->elements ? STORE_NONE : r;
}

void array_tasks_fini(struct array_tasks *array)
{
    free(array->elements);
    json_decref(array->detail);
    *array = (struct array_tasks){0};
}

static uint64_t find_live(const struct core *core, uint64_t array, int index)
{
    const struct task *task = core_next_task(core, array);
    while (task && task->array.id == array && task->array.index < index)
        task = core_next_task(core, task->id);
    return task && task->array.id == array && task->array.index == index ? task->id : 0;
}

uint64_t array_tasks_find(const struct core *core, struct store *store, uint64_t array, int index)
{
    struct array_tasks all;
    uint64_t id = find_live(core, array, index);
    if (id || array_tasks_read(store, array, NULL, &all) != 0)
        return id;
    for (int i = 0; i < all.n && id == 0; i++)
        if (all.elements[i].index == index)
            id = all.elements[i].task;
    array_tasks_fini(&all);
    return id;
}
