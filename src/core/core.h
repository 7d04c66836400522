/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: one step function. A driver (the daemon, the simulator, a test) feeds events with
 * their time inside and carries out the effects each step leaves. No I/O, no clock, no threads,
 * nothing global.
 *
 * Contract (of the driver):
 *   1. It writes an input to its log before it feeds it. Samples and ticks need not be written.
 *   2. It writes the decision of an EFFECT_APPEND before it carries out the effects behind it.
 *   3. The time of an event is not before that of the event before it.
 */
#ifndef COLLOC_CORE_CORE_H
#define COLLOC_CORE_CORE_H

#include "core/effect.h"
#include "core/event.h"
#include "core/questions.h"
#include "core/settings.h"

/* Creates a core without GPUs and tasks. `settings`: copied. Returns it, for core_destroy; NULL
 * without memory. */
struct core *core_create(const struct core_settings *settings);
void core_destroy(struct core *core);

/* From now on the core calls `check` to find out whether the server of a GPU admits a task. Copied;
 * its context is borrowed until core_destroy. */
void core_set_node_check(struct core *core, const struct node_check *check);

/* Replaces the settings from now on; the state stays. */
void core_configure(struct core *core, const struct core_settings *settings);

/*
 * Applies the event and decides what follows from it.
 *
 * Returns 0; or, with nothing changed, CORE_NO_SUCH_TASK or CORE_NOT_NOW for an event that does not
 * suit the state (a cancel of a task that has ended, a sample of no GPU); or -ENOMEM: the driver
 * has to end and replay its log.
 */
int core_step(struct core *core, const struct event *event);

/*
 * Applies the event and decides nothing: how a log is replayed.
 *
 * After the log's end the driver feeds STARTED, UNSTARTED or EXITED for each task that has an
 * attempt (task_state_has_attempt; core_next_task lists all tasks). STARTED of a task that is
 * ENDING leaves its EFFECT_KILL again; of one that is being suspended, resumed, moved or is paused,
 * that effect. A waiting allocation is not answered until the driver feeds its MEMORY_WAIT again,
 * or MEMORY_WAIT_END if it waits no more. The first step after a replay also decides what the log's
 * last inputs left undecided, such as an EXITED or a CANCEL whose END was never written.
 *
 * Returns as core_step does.
 */
int core_apply(struct core *core, const struct event *event);

/* Frees a task that has ended. Others, and ids that are not known, stay as they are. */
void core_forget(struct core *core, uint64_t id);

#endif
