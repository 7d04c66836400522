/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual-clock driver of the core: the other driver beside the daemon's. Events lie on a heap
 * by time; running takes the earliest, sets the clock to it and steps the core; the effects go to
 * the world behind the driver, which answers with further events. The same order of scheduling
 * always gives the same run.
 */
#ifndef COLLOC_SIM_DRIVER_H
#define COLLOC_SIM_DRIVER_H

#include <stdint.h>

#include "core/core.h"

struct sim;

/* What stands behind the core: pretend GPUs and pretend tasks. Every function may schedule events.
 */
struct sim_world {
    void *context;
    void (*start)(void *context, struct sim *sim,
        const struct task *task); /* must lead to STARTED or EXITED */
    void (*kill)(void *context, struct sim *sim, const struct task *task); /* must lead to EXITED */
    /* An event of the world's own (kind >= EVENT_KINDS) has come due. */
    void (*wake)(void *context, struct sim *sim, const struct event *event);
};

/* Is told every input and decision, and every EFFECT_WAIT (as kind EVENT_KINDS, with the task), in
 * order. May be NULL.
 */
typedef void sim_listener(void *context, struct sim *sim, const struct event *event);

/* Settings are copied, the world is borrowed. NULL when memory is out. */
struct sim *sim_create(const struct core_settings *settings, const struct sim_world *world,
    sim_listener *listener, void *listener_context);
void sim_destroy(struct sim *sim);

struct core *sim_core(struct sim *sim);
int64_t sim_now_us(const struct sim *sim);

/*
 * Schedules an event (copied; what it points to must live until then). Events of the same time come
 * in the order in which they were scheduled. A time in the past means now. 0 or -ENOMEM.
 */
int sim_at(struct sim *sim, const struct event *event);

/* Steps the core with an event that happens now, from within the world's `wake`. What core_step
 * answers. */
int sim_feed(struct sim *sim, const struct event *event);

/* Runs until the heap is empty or the clock would pass `until_us`. 0 or a fault of the core. */
int sim_run(struct sim *sim, int64_t until_us);

#endif
