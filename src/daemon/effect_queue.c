/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list whose first item moves on, and a tree of the tasks in it. What has been taken from the
 * list leaves room at its front, which is used again once that is half of it:
 *
 *     taken taken taken 4 5 6          7 comes:  4 5 6 7
 */
#include "daemon/effect_queue.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A task in the tree. */
struct queued_task {
    uint64_t id;
    size_t n; /* of its effects */
};

static int compare_tasks(const void *a, const void *b)
{
    const struct queued_task *one = a, *other = b;
    return (one->id > other->id) - (one->id < other->id);
}

static struct queued_task *find_task(const struct effect_queue *queue, uint64_t task)
{
    const struct queued_task wanted = {.id = task};
    struct queued_task **found = tfind(&wanted, &queue->tasks, compare_tasks);
    return found ? *found : NULL;
}

static int count_task(struct effect_queue *queue, uint64_t task)
{
    struct queued_task *found = find_task(queue, task);
    if (found) {
        found->n++;
        return 0;
    }
    found = malloc(sizeof *found);
    if (!found)
        return -ENOMEM;
    *found = (struct queued_task){.id = task, .n = 1};
    if (tsearch(found, &queue->tasks, compare_tasks))
        return 0;
    free(found);
    return -ENOMEM;
}

static void uncount_task(struct effect_queue *queue, uint64_t task)
{
    struct queued_task *found = find_task(queue, task);
    if (--found->n > 0)
        return;
    tdelete(found, &queue->tasks, compare_tasks);
    free(found);
}

/* Moves what waits to the front of the list, when at least as much has been taken. */
static void close_up(struct effect_queue *queue)
{
    size_t n = queue->end - queue->first;
    if (queue->first < n)
        return;
    if (n)
        memmove(queue->list, queue->list + queue->first, n * sizeof *queue->list);
    queue->first = 0;
    queue->end = n;
}

int effect_queue_add(struct effect_queue *queue, struct pending_effect effect)
{
    if (queue->end == queue->capacity)
        close_up(queue);
    if (ARRAY_RESERVE(queue->list, queue->capacity, queue->end + 1) < 0 ||
        count_task(queue, effect.task) < 0)
        return -ENOMEM;
    queue->list[queue->end++] = effect;
    return 0;
}

struct pending_effect effect_queue_take(struct effect_queue *queue)
{
    struct pending_effect effect = queue->list[queue->first++];
    uncount_task(queue, effect.task);
    return effect;
}

bool effect_queue_take_kind(
    struct effect_queue *queue, enum effect_kind kind, struct pending_effect *ret_effect)
{
    size_t i = queue->first;
    while (i < queue->end && queue->list[i].kind != kind)
        i++;
    if (i == queue->end)
        return false;
    struct pending_effect found = queue->list[i];
    memmove(queue->list + queue->first + 1, queue->list + queue->first,
        (i - queue->first) * sizeof *queue->list);
    queue->list[queue->first] = found;
    *ret_effect = effect_queue_take(queue);
    return true;
}

bool effect_queue_has(const struct effect_queue *queue, uint64_t task)
{
    return find_task(queue, task);
}

void effect_queue_fini(struct effect_queue *queue)
{
    while (!effect_queue_is_empty(queue))
        effect_queue_take(queue);
    free(queue->list);
    *queue = (struct effect_queue){0};
}
