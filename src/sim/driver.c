/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/driver.h"

#include <errno.h>
#include <stdlib.h>

/* Events are large: the heap moves only when and in which order they come. */
struct entry {
    int64_t time_us;
    uint64_t order;
    int slot; /* the event's */
};

struct sim {
    struct core *core;
    const struct sim_world *world;
    sim_listener *listener;
    void *listener_context;
    int64_t now_us;
    int64_t tick_us; /* the tick that is scheduled already */
    bool has_limits; /* some task has a time limit */
    struct entry *heap;
    struct event *slots; /* of the heap's entries; those behind `count` keep the free ones */
    int count, room;
    uint64_t next_order;
};

struct sim *sim_create(const struct core_settings *settings, const struct sim_world *world,
    sim_listener *listener, void *listener_context)
{
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    sim->core = core_create(settings);
    if (!sim->core) {
        free(sim);
        return NULL;
    }
    sim->world = world;
    sim->listener = listener;
    sim->listener_context = listener_context;
    sim->tick_us = INT64_MAX;
    return sim;
}

void sim_destroy(struct sim *sim)
{
    if (!sim)
        return;
    core_destroy(sim->core);
    free(sim->heap);
    free(sim->slots);
    free(sim);
}

struct core *sim_core(struct sim *sim)
{
    return sim->core;
}

int64_t sim_now_us(const struct sim *sim)
{
    return sim->now_us;
}

/* ---- a binary heap by time, then by order of scheduling ---- */

static bool is_before(const struct entry *a, const struct entry *b)
{
    return a->time_us != b->time_us ? a->time_us < b->time_us : a->order < b->order;
}

static void sift_up(struct entry *heap, int i, struct entry entry)
{
    for (; i > 0 && is_before(&entry, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
}

static void sift_down(struct entry *heap, int count, struct entry entry)
{
    int i = 0;
    for (int child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &entry))
            break;
        heap[i] = heap[child];
    }
    heap[i] = entry;
}

static int grow(struct sim *sim)
{
    int room = sim->room ? sim->room * 2 : 64;
    struct entry *heap = realloc(sim->heap, (size_t)room * sizeof *heap);
    if (heap)
        sim->heap = heap;
    struct event *slots = realloc(sim->slots, (size_t)room * sizeof *slots);
    if (slots)
        sim->slots = slots;
    if (!heap || !slots)
        return -ENOMEM;
    for (int i = sim->room; i < room; i++)
        heap[i].slot = i;
    sim->room = room;
    return 0;
}

int sim_at(struct sim *sim, const struct event *event)
{
    if (sim->count == sim->room && grow(sim) < 0)
        return -ENOMEM;
    struct entry entry = {.order = sim->next_order++, .slot = sim->heap[sim->count].slot};
    entry.time_us = event->time_us < sim->now_us ? sim->now_us : event->time_us;
    sim->slots[entry.slot] = *event;
    sim->slots[entry.slot].time_us = entry.time_us;
    sift_up(sim->heap, sim->count++, entry);
    return 0;
}

static struct event take_earliest(struct sim *sim)
{
    int slot = sim->heap[0].slot;
    if (--sim->count)
        sift_down(sim->heap, sim->count, sim->heap[sim->count]);
    sim->heap[sim->count].slot = slot;
    return sim->slots[slot];
}

/* ---- running ---- */

static void tell(struct sim *sim, const struct event *event)
{
    if (sim->listener)
        sim->listener(sim->listener_context, sim, event);
}

static void carry_out(struct sim *sim, const struct effect *effect)
{
    const struct task *task = core_task(sim->core, effect->task);
    struct event wait = {.kind = EVENT_KINDS, .time_us = sim->now_us, .task = effect->task};
    switch (effect->kind) {
    case EFFECT_APPEND:
        tell(sim, &effect->event);
        break;
    case EFFECT_START:
        sim->world->start(sim->world->context, sim, task);
        break;
    case EFFECT_KILL:
        sim->world->kill(sim->world->context, sim, task);
        break;
    case EFFECT_WAIT:
        tell(sim, &wait);
        break;
    }
}

static int schedule_tick(struct sim *sim)
{
    int64_t deadline = sim->has_limits ? core_deadline_us(sim->core) : INT64_MAX;
    if (deadline == INT64_MAX || deadline >= sim->tick_us)
        return 0;
    sim->tick_us = deadline;
    struct event tick = {.kind = EVENT_TICK, .time_us = deadline};
    return sim_at(sim, &tick);
}

int sim_feed(struct sim *sim, const struct event *event)
{
    if (event->kind == EVENT_TICK)
        sim->tick_us = INT64_MAX;
    sim->has_limits |= event->kind == EVENT_SUBMIT && event->submit.request.time_limit_us > 0;
    int r = core_step(sim->core, event);
    if (r > 0)
        return r;
    tell(sim, event);
    int n;
    const struct effect *effects = core_effects(sim->core, &n);
    for (int i = 0; i < n; i++)
        carry_out(sim, &effects[i]);
    return r < 0 ? r : schedule_tick(sim);
}

int sim_run(struct sim *sim, int64_t until_us)
{
    while (sim->count && sim->heap[0].time_us <= until_us) {
        struct event event = take_earliest(sim);
        sim->now_us = event.time_us;
        int r = 0;
        if (event.kind >= EVENT_KINDS)
            sim->world->wake(sim->world->context, sim, &event);
        else
            r = sim_feed(sim, &event);
        if (r < 0)
            return r;
    }
    return 0;
}
