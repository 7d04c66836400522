/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of events, and what they point to. Names stand in logs: an old name stays when the
 * event gets a better one.
 *
 * The lists of an event are borrowed: they belong to its sender, and are valid during one step. A
 * copy owns its lists. A new pointer in struct event needs a row in `lists`.
 */
#include "core/event.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const char *const names[EVENT_KINDS] = {
    [EVENT_GPUS] = "GPUS",
    [EVENT_SUBMIT] = "SUBMIT",
    [EVENT_ESTIMATE] = "ESTIMATE",
    [EVENT_SAMPLE] = "SAMPLE",
    [EVENT_STARTED] = "STARTED",
    [EVENT_UNSTARTED] = "UNSTARTED",
    [EVENT_EXITED] = "EXITED",
    [EVENT_CANCEL] = "CANCEL",
    [EVENT_RUN_AGAIN] = "RUN_AGAIN",
    [EVENT_HOLD] = "HOLD",
    [EVENT_RELEASE] = "RELEASE",
    [EVENT_UPDATE] = "UPDATE",
    [EVENT_SUSPEND] = "SUSPEND",
    [EVENT_RESUME] = "RESUME",
    [EVENT_MOVE] = "MOVE",
    [EVENT_SUSPENDED] = "SUSPENDED",
    [EVENT_RESUMED] = "RESUMED",
    [EVENT_MOVED] = "MOVED",
    [EVENT_RELOCATED] = "RELOCATED",
    [EVENT_SUSPENSION_FAILED] = "SUSPENSION_FAILED",
    [EVENT_MEMORY_WAIT] = "MEMORY_WAIT",
    [EVENT_MEMORY_WAIT_END] = "MEMORY_WAIT_END",
    [EVENT_DEPENDENCY] = "DEPENDENCY",
    [EVENT_RESERVE] = "RESERVE",
    [EVENT_UNRESERVE] = "UNRESERVE",
    [EVENT_IDLE] = "IDLE",
    [EVENT_WAKE] = "WAKE",
    [EVENT_METRIC] = "METRIC",
    [EVENT_STEP] = "STEP",
    [EVENT_LATENCY] = "LATENCY",
    [EVENT_SPEED] = "SPEED",
    [EVENT_SUSPENSION_COST] = "SUSPENSION_COST",
    [EVENT_TICK] = "TICK",
    [EVENT_PLACE] = "PLACE",
    [EVENT_EXPIRE] = "EXPIRE",
    [EVENT_STOP] = "STOP",
    [EVENT_EVICT] = "EVICT",
    [EVENT_EXTERNAL_SEEN] = "COMPANY",
    [EVENT_RECOVER] = "RECOVER",
    [EVENT_REQUEUE] = "REQUEUE",
    [EVENT_RESTART] = "RESTART",
    [EVENT_END] = "END",
    [EVENT_SUSPENDING] = "SUSPENDING",
    [EVENT_RELOCATING] = "RELOCATING",
    [EVENT_RESUMING] = "RESUMING",
    [EVENT_MOVING] = "MOVING",
    [EVENT_PAUSE] = "PAUSE",
    [EVENT_CONTINUE] = "CONTINUE",
    [EVENT_MEMORY_ANSWER] = "MEMORY_ANSWER",
    [EVENT_ELIGIBLE] = "ELIGIBLE",
    [EVENT_LATEST_START] = "LATEST_START",
    [EVENT_FIFO] = "FIFO",
    [EVENT_USAGE] = "USAGE",
    [EVENT_DELAYS] = "DELAYS",
};

const char *event_name(enum event_kind kind)
{
    return names[kind];
}

int event_parse_name(const char *name, enum event_kind *ret_kind)
{
    for (int i = 0; i < EVENT_KINDS; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_kind = (enum event_kind)i;
            return 0;
        }
    }
    return -EINVAL;
}

/* ---- what events point to ---- */

/* A list that an event of this kind points to; or, without a count, a text. */
static const struct event_list {
    enum event_kind kind;
    size_t pointer, count; /* offsets in struct event; `count` 0: a text */
    size_t size;           /* of an element */
} lists[] = {
#define AT(member)                 offsetof(struct event, member)
#define SIZE(member)               sizeof *((struct event *)0)->member
#define LIST(kind, pointer, count) (kind), AT(pointer), AT(count), SIZE(pointer)
#define TEXT(kind, pointer)        (kind), AT(pointer), 0, 1
    {LIST(EVENT_GPUS, gpus.list, gpus.n)},
    {LIST(EVENT_SUBMIT, submit.request.after, submit.request.n_after)},
    {TEXT(EVENT_SUBMIT, submit.request.gpu_kind)},
    {LIST(EVENT_SUBMIT, submit.elements, submit.n_elements)},
    {LIST(EVENT_UPDATE, update.after, update.n_after)},
    {LIST(EVENT_SAMPLE, sample.tasks, sample.n_tasks)},
    {LIST(EVENT_PLACE, place.gpus, place.n)},
    {LIST(EVENT_SUSPENDING, yield.gpus, yield.n)},
    {LIST(EVENT_MOVE, yield.gpus, yield.n)},
    {LIST(EVENT_MOVING, yield.gpus, yield.n)},
    {LIST(EVENT_RESUMING, yield.gpus, yield.n)},
    {LIST(EVENT_FIFO, fifo.free_us, fifo.n)},
};

static const void *pointer_of(const struct event *event, const struct event_list *list)
{
    const void *pointer;
    memcpy(&pointer, (const char *)event + list->pointer, sizeof pointer);
    return pointer;
}

static void set_pointer(struct event *event, const struct event_list *list, const void *pointer)
{
    memcpy((char *)event + list->pointer, &pointer, sizeof pointer);
}

static size_t size_of(const struct event *event, const struct event_list *list)
{
    int count;
    if (!list->count)
        return strlen(pointer_of(event, list)) + 1;
    memcpy(&count, (const char *)event + list->count, sizeof count);
    return count > 0 ? (size_t)count * list->size : 0;
}

static int copy_list(const struct event *event, const struct event_list *list, struct event *copy)
{
    size_t size = size_of(event, list);
    void *own = malloc(size + 1); /* an empty list is not NULL, which may mean another thing */
    if (!own)
        return -ENOMEM;
    if (size)
        memcpy(own, pointer_of(event, list), size);
    set_pointer(copy, list, own);
    return 0;
}

int event_copy(const struct event *event, struct event *ret_copy)
{
    struct event copy = *event;
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        if (lists[i].kind == event->kind)
            set_pointer(&copy, &lists[i], NULL);
    for (size_t i = 0; i < ARRAY_SIZE(lists) && r == 0; i++)
        if (lists[i].kind == event->kind && pointer_of(event, &lists[i]))
            r = copy_list(event, &lists[i], &copy);
    if (r < 0)
        event_release(&copy);
    else
        *ret_copy = copy;
    return r;
}

void event_release(struct event *copy)
{
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (lists[i].kind != copy->kind)
            continue;
        free((void *)(uintptr_t)pointer_of(copy, &lists[i]));
        set_pointer(copy, &lists[i], NULL);
    }
}
