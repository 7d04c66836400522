/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual clock: what is scheduled happens in order of time. What is scheduled lies in two
 * arrays. `heap` orders small entries by time and then by the order of scheduling; `slots` holds
 * what comes due, which is large and never moves while it waits. Each heap entry names its slot;
 * the heap entries behind `count` name the free slots.
 */
#include "sim/sim_driver.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"

/* Chosen: far above what one moment of a large cluster has, and what ticks alone are needed for. */
#define STEPS_MAX 1000000

struct heap_entry {
    int64_t time_us;
    uint64_t order; /* of scheduling */
    int slot;
};

struct slot {
    bool is_wakeup;
    union {
        struct event event;
        struct sim_wakeup wakeup;
    };
};

struct sim {
    struct core *core;
    const struct sim_world *world;
    const struct sim_observer *observer; /* or NULL */
    int64_t now_us;
    int64_t tick_us; /* the time of the scheduled TICK, or TIME_NEVER */
    bool has_limits; /* the core has deadlines: limits of time or usage, delayed decisions, or
                        suspensions */
    struct heap_entry *heap;
    struct slot *slots;
    int at_once;        /* entries run since time passed, or a task came or ended */
    int idle_ticks;     /* TICKs in a row that changed nothing while nothing else was scheduled */
    uint64_t last_task; /* of the last event that was of one */
    int count;          /* of scheduled entries */
    int n_slots;        /* numbered so far: the most entries that there ever were */
    size_t heap_capacity, slots_capacity;
    uint64_t next_order;
};

struct sim *sim_create(const struct core_settings *settings, const struct sim_world *world,
    const struct sim_observer *observer)
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
    sim->observer = observer;
    sim->tick_us = TIME_NEVER;
    sim->has_limits = settings->can_suspend || settings->can_pause || settings->preload ||
                      settings->decision_delay_us || settings->user_limits.usage_us;
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

uint64_t sim_last_task(const struct sim *sim)
{
    return sim->last_task;
}

/* ---- a binary heap by time, then by order of scheduling ---- */

static bool is_before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->time_us != b->time_us ? a->time_us < b->time_us : a->order < b->order;
}

static void sift_up(struct heap_entry *heap, int i, struct heap_entry entry)
{
    for (; i > 0 && is_before(&entry, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
}

static void sift_down(struct heap_entry *heap, int count, struct heap_entry entry)
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

/* One more slot, named by a heap entry behind the others. */
static int add_slot(struct sim *sim)
{
    if (ARRAY_RESERVE(sim->slots, sim->slots_capacity, sim->n_slots + 1) < 0)
        return -ENOMEM;
    const struct heap_entry free_entry = {.slot = sim->n_slots};
    size_t n = (size_t)sim->n_slots;
    if (ARRAY_APPEND(sim->heap, n, sim->heap_capacity, free_entry) < 0)
        return -ENOMEM;
    sim->n_slots++;
    return 0;
}

/* Puts an entry on the heap. Returns its slot, for the caller to fill; NULL without memory. */
static struct slot *add_entry(struct sim *sim, int64_t time_us, int64_t *ret_time_us)
{
    if (sim->count == sim->n_slots && add_slot(sim) < 0)
        return NULL;
    struct heap_entry entry = {.order = sim->next_order++, .slot = sim->heap[sim->count].slot};
    *ret_time_us = entry.time_us = time_us < sim->now_us ? sim->now_us : time_us;
    sift_up(sim->heap, sim->count++, entry);
    return &sim->slots[entry.slot];
}

int sim_schedule_event(struct sim *sim, const struct event *event)
{
    int64_t time_us;
    struct slot *slot = add_entry(sim, event->time_us, &time_us);
    if (!slot)
        return -ENOMEM;
    slot->is_wakeup = false;
    slot->event = *event;
    slot->event.time_us = time_us;
    return 0;
}

int sim_schedule_wakeup(struct sim *sim, const struct sim_wakeup *wakeup)
{
    int64_t time_us;
    struct slot *slot = add_entry(sim, wakeup->time_us, &time_us);
    if (!slot)
        return -ENOMEM;
    slot->is_wakeup = true;
    slot->wakeup = *wakeup;
    slot->wakeup.time_us = time_us;
    return 0;
}

/* Removes the earliest entry. Its slot keeps its contents until the next entry is scheduled. */
static const struct slot *take_earliest(struct sim *sim)
{
    int slot = sim->heap[0].slot;
    if (--sim->count)
        sift_down(sim->heap, sim->count, sim->heap[sim->count]);
    sim->heap[sim->count].slot = slot;
    return &sim->slots[slot];
}

/* ---- running ---- */

static void note_event(struct sim *sim, const struct event *event)
{
    if (event->kind == EVENT_SUBMIT || event->kind == EVENT_END)
        sim->at_once = 0;
    if (event->task)
        sim->last_task = event->task;
}

static void report_event(struct sim *sim, const struct event *event)
{
    note_event(sim, event);
    if (sim->observer)
        sim->observer->on_event(sim->observer->context, sim, event);
}

static void carry_out(struct sim *sim, const struct effect *effect)
{
    const struct task *task = core_task(sim->core, effect->task);
    switch (effect->kind) {
    case EFFECT_APPEND:
        report_event(sim, &effect->event);
        break;
    case EFFECT_START:
        sim->world->start(sim->world->context, sim, task);
        break;
    case EFFECT_KILL:
        sim->world->kill(sim->world->context, sim, task);
        break;
    case EFFECT_WAIT:
        if (sim->observer)
            sim->observer->on_wait(sim->observer->context, sim, effect->task);
        break;
    case EFFECT_SUSPEND:
    case EFFECT_RESUME:
    case EFFECT_MOVE:
    case EFFECT_RELOCATE:
    case EFFECT_PAUSE:
    case EFFECT_CONTINUE:
    case EFFECT_GRANT_MEMORY:
    case EFFECT_DENY_MEMORY:
        sim->world->yield(sim->world->context, sim, task, effect->kind);
        break;
    }
}

/* Of a simulation without limits, only a cancel leaves something to a tick. */
static int schedule_tick(struct sim *sim, const struct event *after)
{
    bool has_deadlines = sim->has_limits || after->kind == EVENT_CANCEL;
    int64_t deadline_us = has_deadlines ? core_deadline_us(sim->core) : TIME_NEVER;
    if (deadline_us == TIME_NEVER || deadline_us >= sim->tick_us)
        return 0;
    sim->tick_us = deadline_us;
    struct event tick = {.kind = EVENT_TICK, .time_us = deadline_us};
    return sim_schedule_event(sim, &tick);
}

int sim_step(struct sim *sim, const struct event *event)
{
    if (event->kind == EVENT_TICK)
        sim->tick_us = TIME_NEVER;
    const struct task_request *request = &event->submit.request;
    sim->has_limits |= event->kind == EVENT_SUBMIT &&
                       (request->time_limit_us > 0 || request->begin_us > 0 ||
                           request->n_after > 0);
    sim->has_limits |= event->kind == EVENT_UPDATE || event->kind == EVENT_RESERVE;
    int r = core_step(sim->core, event);
    if (r > 0)
        return r;
    report_event(sim, event);
    int n;
    const struct effect *effects = core_effects(sim->core, &n);
    bool is_idle = event->kind == EVENT_TICK && n == 0 && sim->count == 0;
    sim->idle_ticks = is_idle ? sim->idle_ticks + 1 : 0;
    for (int i = 0; i < n; i++)
        carry_out(sim, &effects[i]);
    return r < 0 ? r : schedule_tick(sim, event);
}

/* Steps the core or wakes the world. The slot is copied first: what follows may reuse it. */
static int run_earliest(struct sim *sim)
{
    const struct slot *slot = take_earliest(sim);
    int64_t time_us = slot->is_wakeup ? slot->wakeup.time_us : slot->event.time_us;
    sim->at_once = time_us > sim->now_us ? 0 : sim->at_once + 1;
    if (sim->at_once > STEPS_MAX)
        return -ELOOP;
    if (sim->idle_ticks > STEPS_MAX)
        return -EDEADLK;
    if (slot->is_wakeup) {
        struct sim_wakeup wakeup = slot->wakeup;
        sim->now_us = wakeup.time_us;
        sim->world->wake(sim->world->context, sim, &wakeup);
        return 0;
    }
    struct event event = slot->event;
    sim->now_us = event.time_us;
    return sim_step(sim, &event);
}

int sim_run(struct sim *sim, int64_t until_us)
{
    while (sim->count && sim->heap[0].time_us <= until_us) {
        int r = run_earliest(sim);
        if (r < 0)
            return r;
    }
    return 0;
}
