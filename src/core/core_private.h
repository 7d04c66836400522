/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/core share: the state of the core, and what each file does to it. */
#ifndef COLLOC_CORE_PRIVATE_H
#define COLLOC_CORE_PRIVATE_H

#include "core/core.h"

/* The last EFFECT_WAIT of a queue: it is repeated only when the task or its reasons change. */
struct reported_wait {
    uint64_t task;
    uint64_t reasons; /* a hash of the verdicts' kinds and tasks */
};

struct core {
    struct core_settings settings;
    struct cluster_view view;

    struct task **tasks; /* by rising id */
    int n_tasks;
    size_t tasks_capacity;
    struct task_queue main_queue, recovery_queue;

    struct effect *effects;
    int n_effects;
    size_t effects_capacity;

    int *chosen;              /* scratch: one per GPU */
    struct verdict *verdicts; /* scratch: one per GPU */

    struct reported_wait main_wait, recovery_wait;
    uint64_t drained_for;  /* the recovering task that GPUs are drained for; 0: none */
    uint64_t reserved_for; /* the head of the queue that GPUs are reserved for; 0: none */
    bool any_gone;         /* a MIG instance is gone */
    bool replayed;         /* since the last step: the log may have ended before a decision */
    bool pass_needed;      /* something has changed that may let a task be placed */
    int64_t last_pass_us;
};

/* ---- tasks.c ---- */

/* By id. Returns NULL when there is none. */
struct task *core_find_task(const struct core *core, uint64_t id);

/* A new task, zeroed but for its id. Returns NULL when memory is out. */
struct task *core_add_task(struct core *core, uint64_t id);

void core_free_tasks(struct core *core);

/* ---- apply.c: the only file that changes the state of tasks ---- */

/*
 * Changes the state as the event says; decides nothing.
 *
 * Returns 0, CORE_NO_SUCH_TASK or CORE_NOT_NOW (nothing has changed), or -ENOMEM.
 */
int core_apply_event(struct core *core, const struct event *event);

/* Drains no GPU any more. */
void core_stop_draining(struct core *core);

/* ---- view_update.c, residence.c ---- */

/* Applies an EVENT_SAMPLE. Sets core->pass_needed when a task may be placed after it. Returns 0,
 * CORE_NOT_NOW or -ENOMEM. */
int core_apply_sample(struct core *core, const struct event *event);

/* Moves the resident along residence.h by its reading of memory. Returns whether it has just taken
 * more than a CUDA context. */
bool resident_follow_memory(
    const struct core_settings *settings, struct resident *resident, int64_t now_us);

/* ---- fault_attribution.c ---- */

/* Decides whether the exited task may be at fault for its end. Call it while the task still holds
 * its GPUs. */
void core_attribute_exit(struct core *core, struct task *task, const struct event *event);

/* ---- effects.c ---- */

/* Applies a decision and leaves it to be written to the log. Returns 0 or -ENOMEM. */
int core_decide(struct core *core, const struct event *event);

/* Leaves an effect to be carried out. `event`: of EFFECT_APPEND, or NULL. Returns 0 or -ENOMEM. */
int core_add_effect(
    struct core *core, enum effect_kind kind, uint64_t task, const struct event *event);

/* Records for each resident of the GPU that external processes are beside it. Returns 0 or
 * -ENOMEM. */
int core_record_external(struct core *core, int gpu, int64_t now_us);

/* ---- schedule.c ---- */

/* Tasks. Chosen: once this many later ones have started before it, the oldest task is the head. */
enum { CORE_PASSED_MAX = 100 };

/* The task's policy, or the default. */
const struct policy *core_task_policy(const struct core *core, const struct task *task);

/* The question that a policy is asked about the task. */
struct placement_query core_query(const struct core *core, const struct task *task, int64_t now_us);

/* The task of the main queue that is placed next. Returns NULL when the queue is empty. */
struct task *core_head_of_queue(const struct core *core);

/* Starts what can start: the recovery queue first. Returns 0 or -ENOMEM. */
int core_schedule(struct core *core, int64_t now_us);

#endif
