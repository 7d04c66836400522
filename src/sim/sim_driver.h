/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual-clock driver of the core (the other driver is the daemon's). It owns a core, a clock
 * and a heap of what is scheduled by time: events for the core, and wake-ups for the simulated
 * world behind it. sim_run takes the earliest entry, sets the clock to its time, and steps the core
 * or wakes the world. The world carries out the effects of each step and schedules what follows.
 *
 *     sim_run -> core event -> core_step -> effects -> world.start, world.kill -> sim_schedule_...
 *             -> wake-up    -> world.wake -> sim_step, sim_schedule_...
 *
 * Contract:
 * 1. Entries of the same time come due in the order in which they were scheduled: the same order
 *    of calls always gives the same run.
 * 2. The clock never goes back: an entry scheduled for a past time comes due now.
 * 3. The driver schedules a TICK at the core's deadline; worlds schedule none.
 */
#ifndef COLLOC_SIM_SIM_DRIVER_H
#define COLLOC_SIM_SIM_DRIVER_H

#include <stdint.h>

#include "core/core.h"

struct sim;

/* A scheduled call of the world's `wake`. Only the world gives meaning to kind, subject and
 * version. */
struct sim_wakeup {
    int kind;         /* a value of the world's own enumeration */
    int64_t time_us;  /* virtual time at which it comes due */
    uint64_t subject; /* which task, GPU or input it is about */
    int version; /* which attempt or plan of the subject it belongs to: outdated ones are ignored */
};

/* The simulated GPUs and tasks, which carry out the core's effects. Each function may schedule
 * entries. */
struct sim_world {
    void *context;
    /* Starts an attempt of the task. Must lead to a STARTED or EXITED event. */
    void (*start)(void *context, struct sim *sim, const struct task *task);
    /* Ends the task's attempt. Must lead to an EXITED event. */
    void (*kill)(void *context, struct sim *sim, const struct task *task);
    /* A wake-up has come due; the wake-up is valid during the call. */
    void (*wake)(void *context, struct sim *sim, const struct sim_wakeup *wakeup);
    /* Suspends, resumes, moves, pauses or continues the task, or grants or denies its waiting
     * allocation, as the effect says (core.h lists the events that must follow). NULL: the settings
     * allow none of these. */
    void (*yield)(void *context, struct sim *sim, const struct task *task, enum effect_kind effect);
};

/* Watches a run. Both functions are called in the order in which things happen. */
struct sim_observer {
    void *context;
    /* The core accepted an input, or made a decision. */
    void (*on_event)(void *context, struct sim *sim, const struct event *event);
    /* The reason why `task`, the head of its queue, waits has changed (core_explain gives it). */
    void (*on_wait)(void *context, struct sim *sim, uint64_t task);
};

/*
 * Creates a driver at time 0 with nothing scheduled.
 *
 * settings: copied.
 * world:    borrowed until sim_destroy.
 * observer: borrowed until sim_destroy; or NULL.
 *
 * Returns the driver, for sim_destroy; NULL without memory.
 */
struct sim *sim_create(const struct core_settings *settings, const struct sim_world *world,
    const struct sim_observer *observer);

/* Frees the driver and its core. NULL is allowed. */
void sim_destroy(struct sim *sim);

/* Returns the core, which belongs to the driver. */
struct core *sim_core(struct sim *sim);

/* Returns the task of the last event that was of one; 0: there was none. */
uint64_t sim_last_task(const struct sim *sim);

/* Returns the virtual time in microseconds. */
int64_t sim_now_us(const struct sim *sim);

/*
 * Schedules an event for the core.
 *
 * event: copied; what it points to must live until the event has come due.
 *
 * Returns 0 or -ENOMEM.
 */
int sim_schedule_event(struct sim *sim, const struct event *event);

/*
 * Schedules a call of the world's `wake`.
 *
 * wakeup: copied.
 *
 * Returns 0 or -ENOMEM.
 */
int sim_schedule_wakeup(struct sim *sim, const struct sim_wakeup *wakeup);

/*
 * Steps the core at once with an event of the present time, and carries out the effects. For
 * worlds, from within `wake`.
 *
 * Returns what core_step returns: 0, CORE_NO_SUCH_TASK, CORE_NOT_NOW, or -ENOMEM.
 */
int sim_step(struct sim *sim, const struct event *event);

/*
 * Runs until nothing is scheduled at or before `until_us`.
 *
 * Returns 0; -ENOMEM from the core; -ELOOP when one thing leads to another without end while no
 * time passes and no task comes or ends; or -EDEADLK when only time passes, without end.
 */
int sim_run(struct sim *sim, int64_t until_us);

#endif
