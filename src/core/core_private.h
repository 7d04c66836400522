/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef COLLOC_CORE_PRIVATE_H
#define COLLOC_CORE_PRIVATE_H

#include "core/core.h"

struct core {
    struct core_settings settings;
    struct cluster_view view;

    struct task **tasks; /* by id, rising */
    int n_tasks, tasks_room;
    struct task_queue main_queue, recovery_queue;

    struct effect *effects;
    int n_effects, effects_room;

    int *chosen;              /* scratch: one per GPU */
    struct verdict *verdicts; /* scratch: one per GPU */

    struct waiting { /* of the last EFFECT_WAIT of each queue: who, and what it was about */
        uint64_t task, why;
    } main_waiting, recovery_waiting;
    uint64_t drained_for,
        reserved_for; /* the task that GPUs of the view are drained or kept for, one at a time; or 0 */
    bool any_gone;    /* of the GPUs' instances */
    bool replayed;    /* since the last step: a log's end may have left things undecided */
    bool
        pass_needed; /* something has changed since the last scheduling pass that may let somebody in
                    */
    int64_t last_pass_us; /* when that was */
};

/* Changes the state as the event says: what core_step and core_apply share. (apply.c) */
int core_apply_event(struct core *core, const struct event *event);

/* No GPU is kept free any more for a task that recovers. (apply.c) */
void core_stop_draining(struct core *core);

/* tasks.c */
struct task *core_find_task(const struct core *core, uint64_t id);
struct task *core_add_task(
    struct core *core, uint64_t id); /* zeroed but for its id; NULL when memory is out */
void core_free_tasks(struct core *core);

/* Grows an array by doubling so that one more item fits. 0 or -ENOMEM. */
int core_make_room(void **array, int *room, int count, size_t item);

/* Takes a sample into the view: windows, what each task uses, who has settled. (sample.c) 0,
 * CORE_NOT_NOW or -ENOMEM.
 */
int core_apply_sample(struct core *core, const struct event *event);

/* The policies' question for one task, without asking it. */
struct placement_query core_query(const struct core *core, const struct task *task, int64_t now_us);
const struct policy *core_task_policy(const struct core *core, const struct task *task);

/* Writes down who is beside processes that are not ours on the GPU. (core.c) 0 or -ENOMEM. */
int core_record_external(struct core *core, int gpu, int64_t now_us);

/* Whether the exited task is to blame for its end; before its GPUs are taken from it. (fault.c) */
void core_attribute_exit(struct core *core, struct task *task, const struct event *event);

/* A task that so many have passed_count comes to be the first in line. */
enum { CORE_PASSED_MAX = 100 };

/* Whom those in the main queue wait for; NULL when it is empty. (schedule.c) */
struct task *core_head_of_queue(const struct core *core);

/* Starts what can start: the recovery queue first. (schedule.c) 0 or -ENOMEM. */
int core_schedule(struct core *core, int64_t now_us);

/* Applies a decision and leaves it to be written. 0 or -ENOMEM. (core.c) */
int core_decide(struct core *core, const struct event *event);
int core_add_effect(
    struct core *core, enum effect_kind kind, uint64_t task, const struct event *event);

#endif
