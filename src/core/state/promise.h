/* SPDX-License-Identifier: Apache-2.0 */
/* The state of promises of speed: how slow a task is, as measured, and whether that is allowed. */
#ifndef COLLOC_CORE_STATE_PROMISE_H
#define COLLOC_CORE_STATE_PROMISE_H

#include "core/promised.h"
#include "core/state/state.h"

/* A new attempt: nothing has been measured of it. */
void core_begin_promise(struct task *task);

/* Applies a SPEED. Returns 0 or CORE_NOT_NOW. */
int core_apply_speed(struct core *core, struct task *task, const struct event *event);

/* What its residence shows of a promise. */
struct resident_promise core_resident_promise(const struct task *task);

/* Returns from when on a task may come beside it, or continue there, as far as its measured speed
 * says; 0: at any time. A report may move it. */
int64_t core_promise_opens_us(const struct task *task);

/* The task has come to the GPU, or computes there again; or it gives way there. */
void core_note_joined_promise(struct core *core, const struct task *task, int gpu, int64_t now_us);
void core_note_gave_way_to_promise(struct core *core, const struct task *task, int64_t now_us);

/* The task pauses so that a promised one is measured alone; or it computes again. */
void core_note_probe_begun(struct core *core, const struct task *task, int64_t now_us);
void core_note_probe_ended(struct core *core, const struct task *task, int64_t now_us);

/* Does the task not compute because another one did not have its promised speed? */
bool core_waits_for_promise(const struct task *task);

/* Has it been slower than promised in all, as far as that was measured? */
bool core_is_behind_promise(const struct task *task);

/* Is the promise missed for so long that a task beside it has to give way? Of a task without a
 * promise: is it one too many for so long that it has to (state/crowding.h)? */
bool core_is_promise_missed(const struct task *task, int64_t now_us);

#endif
