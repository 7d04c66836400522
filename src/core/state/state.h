/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the core. All files of src/core below core.c see it; who may write it is said by the
 * floor on which a file stands, and scripts/check-components holds the order of the floors:
 *
 *     core.c       one step: apply the event, then decide what follows
 *     pass/        the stages of a scheduling pass: which task is tried, stopped or moved next
 *     decide/      one decision each: leaves an event and an effect, and may remove marks
 *     ask/         questions: they write nothing but two memos of answers (struct core_users)
 *     state/       what an event does to the state; decides nothing
 *     src/core     the values that all of them pass on: task.h, event.h, view.h, policy.h
 *
 * A file includes files of the same floor and of those below. explain/ reads ask/ and state/.
 */
#ifndef COLLOC_CORE_STATE_STATE_H
#define COLLOC_CORE_STATE_STATE_H

#include "core/effect.h"
#include "core/event.h"
#include "core/placement_answer.h"
#include "core/policy.h"
#include "core/questions.h"
#include "core/queue.h"
#include "core/settings.h"
#include "fairness/fair_tree.h"
#include "sharing/delay_factor.h"

/* The last EFFECT_WAIT of a queue: it is repeated only when the task or its reasons change. */
struct reported_wait {
    uint64_t task;
    uint64_t reasons; /* a hash of the verdicts' kinds and tasks */
};

/* What first come, first served on whole GPUs would have come to (fifo_schedule.c). */
struct fifo_schedule {
    int64_t *free_us; /* when each GPU would be free, the earliest first; in no order of GPUs */
    int n;
    size_t capacity;
    int64_t last_start_us; /* no task starts before that */
};

/* How many tasks of other users come before those of one user and priority: all of these have the
 * same number (main_queue.c). */
struct ahead_of_user {
    uint64_t change; /* core_users.change when they were counted; 0: never */
    int n;
    int n_by_priority; /* of these, the tasks with a higher priority */
};

/* A user: the charges (charges.c), and with ORDER_FAIR the waiting tasks. */
struct core_user {
    struct task_queue queue; /* the first member: main_queue.c finds the user of a queue */
    uint32_t uid;
    int n_gpus;          /* held by its tasks, each counted for itself */
    double copies_bytes; /* of host memory, by copies of its tasks (copies.c) */
    bool is_unhooked;    /* its processes were last seen without the preloaded library */
    int64_t usage_us;    /* of the last EVENT_USAGE: GPU time, as of usage_at_us */
    int64_t usage_at_us;
    struct usage_window window; /* as of that event too */
    double accrued_us;          /* charged since then, in no event yet */
    struct fair_member fair;    /* its shares, and its rank */
    struct user_delays {
        struct delay_sum recorded; /* of the last EVENT_DELAYS */
        struct delay_sum newer;    /* observed since then, in no event yet */
        int64_t recorded_us;       /* the time of that event; 0: there was none */
    } delays[SHARING_MPS + 1];
    struct ahead_of_user ahead[PRIORITY_URGENT - PRIORITY_LOW + 1];
};

/*
 * The users. Two answers are memos, which a question computes when what they depend on has changed
 * since they were last read, as most changes are read by no question:
 *
 *     fair.rank of each user    is_stale          (ask/standing.h)
 *     ahead of each user        ahead.change      (ask/queue_ahead.c)
 */
struct core_users {
    struct core_user **list;    /* by rising uid */
    struct fair_member **order; /* scratch of core_rank_users */
    int n;
    double *factors;          /* scratch of core_correct_model */
    struct copy_user *copies; /* scratch of core_copy_share */
    size_t capacity, order_capacity, factors_capacity, copies_capacity;
    uint64_t change;     /* counts whatever may change the order of tasks */
    bool is_stale;       /* the ranks are those of before a change, */
    int64_t changed_us;  /* which was then */
    int64_t recorded_us; /* when usage was last recorded; 0: never */
};

/* The open dependencies of tasks, by range, kind and task (dependents.c). */
struct dependents {
    struct dependent {
        struct dependency range;
        uint64_t task; /* that has the dependency */
    } * list;
    size_t n, capacity;
};

/* The end of a task on which others depend. */
struct noted_end {
    uint64_t task;
    bool failed;
};

/* A blocked task that is to be examined, or an array of which a task has made place for another. */
struct opening {
    uint64_t id;
    bool is_array;
};

/* What the order of the main queue was chosen for (preempt.c): hashes, and when. All zero: none. */
struct planned {
    uint64_t gpus, waiting;
    int64_t at_us;
};

/* What is expected of a GPU that may be drained (pass/drain_order.c). */
struct drain_outlook {
    int64_t free_us; /* when it is free for the recovering task, or START_UNKNOWN */
    int n_users;     /* residents that keep it from being idle */
};

/* Which waiting tasks may run on a GPU (ask/neighbour.c). */
struct gpu_wanter {
    uint64_t task; /* one of them; 0: none */
    bool by_others;
};

struct core {
    struct core_settings settings;
    struct share_table shares; /* the settings point to it */
    struct core_users *users;
    struct cluster_view view;

    struct suspension_costs suspension_costs; /* of GPUs of which nothing is known: of
                                              the settings, until an event reports others */
    struct interference_constants learned;    /* those of the settings, with what was learned */
    struct learned_delay learned_delays[SHARING_MPS + 1];

    struct task **tasks; /* by rising id */
    int n_tasks;
    int n_taking_turns;    /* of them, with time slots */
    struct sweep **sweeps; /* reports of arrays with a stop rule (sweeps.c) */
    size_t n_sweeps, sweeps_capacity;
    struct advance *advances; /* by rising id */
    size_t n_advances, advances_capacity;
    uint64_t last_advance;          /* the largest id so far */
    struct fifo_schedule fifo;      /* of tasks with preemption, */
    struct fifo_schedule next_fifo; /* scratch: what is decided next */
    bool is_fifo_long;              /* a task may have left it early since it was decided */
    struct fifo_arrivals {
        uint64_t first, last; /* ids of tasks that may be new to it; last 0: none */
    } fifo_arrivals;
    struct queue_plan plan;          /* of the main queue, with preemption */
    struct planned planned;          /* what it was chosen for */
    struct host_resources host_used; /* by tasks that have an attempt */
    bool any_wanted;                 /* a GPU is closed for a waiting one, or was */
    bool any_inactive;               /* a sample has had a task that does not use its GPUs */
    bool any_return;                 /* a GPU is kept for a suspended task (RETURN, RECALL) */
    bool any_stopped;                /* a resident does not compute (resident.is_stopped), or did */
    bool any_context;                /* a context of a suspended task has stayed on a GPU */
    int n_copies;                    /* of suspended tasks, on GPUs that lend memory */
    int n_memory_waits;              /* tasks of which an allocation waits */
    size_t tasks_capacity;
    struct task_queue main_queue; /* with ORDER_FIFO */
    int n_queued;                 /* in it and the users' queues together */
    struct task_queue recovery_queue, suspended_queue, blocked_queue;
    struct task_queue host_queue; /* of tasks that need no GPU (pass/host_pass.c) */
    struct {                      /* the ids of those that have an attempt */
        uint64_t *list;
        size_t n, capacity;
    } on_host;

    struct dependents on_tasks, on_arrays; /* open dependencies on one task, on several */
    struct {                               /* ends that are to be judged, by rising id */
        struct noted_end *list;
        size_t n, capacity;
    } ended;
    struct { /* what may let blocked tasks become eligible */
        struct opening *list;
        size_t n, capacity;
    } openings;
    struct group_use *group_uses; /* scratch: active tasks of users and projects (eligibility.c) */
    size_t n_group_uses, group_uses_capacity;
    bool is_gate_open;     /* any blocked task may have become eligible */
    int64_t next_begin_us; /* when the next blocked task may begin */

    struct effect *effects;
    int n_effects;
    size_t effects_capacity;

    struct placement placement;    /* scratch: the answer to the last try of a pass */
    uint64_t *closed;              /* scratch: for each GPU, what closes it for a try; 0: nothing */
    struct head_outlook *outlooks; /* scratch: one per GPU, while tasks behind the head are tried */
    struct drain_outlook *drain_outlooks; /* scratch: one per GPU, of a choice of those to drain */
    bool has_outlooks;                    /* they are of the view and the head as they are now */
    struct gpu_wanter *wanters;           /* scratch: one per GPU, */
    bool has_wanters;                     /* found in this pass */
    struct node_check node_check;         /* `ask` is NULL on a single server */

    struct reported_wait main_wait, recovery_wait;
    uint64_t drained_for;  /* the recovering task that GPUs are drained for; 0: none */
    uint64_t reserved_for; /* the head of the queue that GPUs are reserved for; 0: none */
    uint64_t n_choices;    /* counts the choices of GPUs for a head, and their ends */
    bool head_lacks_power; /* the head of the queue would start but for its server's power */
    bool any_gone;         /* a MIG instance is gone */
    bool any_time_limit;   /* a task has had a time limit */
    bool replayed;         /* since the last step: the log may have ended before a decision */
    bool pass_needed;      /* something has changed that may let a task be placed */
    bool is_pass_deferred; /* to the next step: a cancel or a sample has left it */
    int64_t last_pass_us;
    int64_t last_start_us; /* of any task on GPUs; 0: none yet */
};

#endif
