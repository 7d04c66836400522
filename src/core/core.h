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

#include <stddef.h>

#include "base/fault.h"
#include "core/event.h"
#include "core/policy.h"
#include "core/queue.h"
#include "fairness/share_table.h"
#include "sharing/interference_constants.h"

/* Which of the users' tasks comes first (main_queue.c). */
enum queue_order {
    ORDER_FAIR, /* that of the user with the smaller usage per share */
    ORDER_FIFO, /* the oldest */
    QUEUE_ORDERS
};

/* Limits of tasks that are limited, and in queues or running; 0: none. */
struct use_limits {
    int tasks, gpus;      /* a GPU that two tasks share counts twice */
    int64_t memory_bytes; /* of their requirements on all their GPUs together */
    int64_t usage_us;     /* GPU time charged (users.c), within usage_window_us or decayed: beyond
                             it no task starts */
};

struct core_settings {
    const struct policy *policy; /* the default of tasks that name none */
    struct conditions conditions;
    int64_t window_us;               /* the monitoring window; the thesis: 90 s */
    enum window_statistic statistic; /* of activity over the window; the dissertation: the mean */
    int64_t settle_us;               /* memory that has not grown for this time has settled */
    int64_t settle_max_us;           /* the longest hold-off: GPUs closed to others for one task */
    int64_t recovery_step_bytes;     /* more free memory for each crash (thesis 7.2); 0: a crashed
                                        task gets GPUs to itself at once */
    int recoveries_max;              /* starts after a GPU memory crash, per task */
    int requeues_max;       /* starts after ends that were not the task's fault, per task */
    double filler_smact;    /* a task with a higher expected SMACT nearly fills a GPU */
    int filler_percent;     /* such a task, beside other MPS clients, gets this share of the SMs, in
                            per cent; 0: all */
    bool mps_mem_limit;     /* limit an MPS client to its known requirement and the margin */
    bool can_suspend;       /* the driver of the core carries out EFFECT_SUSPEND, RESUME and MOVE */
    bool can_pause;         /* EFFECT_PAUSE and CONTINUE */
    bool preload;           /* EFFECT_GRANT_MEMORY and DENY_MEMORY, and reports MEMORY_WAIT */
    bool preempt;           /* running tasks give way by priority and rank (core/preempt.c) */
    bool make_room;         /* a task is moved so that a waiting one can start (core/make_room.c) */
    bool expires_elsewhere; /* another resource manager ends tasks at their time limit */
    bool look_ahead;        /* with preempt: the order of the queue is chosen by simulating several
                              (policy/lookahead.c) */
    bool backfill; /* tasks start before the head of the queue where that does not delay it */
    struct use_limits user_limits;    /* of each user */
    struct use_limits project_limits; /* of each project but "default" */
    struct host_resources host;       /* what tasks may have of the server together */
    int64_t suspend_unused_us; /* a task that has not used its GPUs for so long is suspended; 0: it
                                  is not */
    int64_t slot_us;           /* the time slot of tasks that take turns (core/slots.c) */
    struct suspension_cost suspension_cost;
    int64_t service_hold_us; /* a service meets its target so long before a task joins it */
    bool is_calibrated;      /* sharing_constants are set; otherwise the built-in ones are used */
    struct interference_constants sharing_constants;
    enum queue_order order;
    int64_t usage_half_life_us; /* of charges (users.c); 0: nothing is charged */
    int64_t usage_window_us;    /* for limits of GPU time: charges within it; 0: decayed usage */
    const struct share_table *shares; /* copied with the settings; NULL: all users are equal */
};

/* The thesis's conditions (section 6.2.2), a hold-off of 10 s within 60 s, three recoveries; no
 * policy yet. */
struct core_settings core_settings_default(void);

enum effect_kind {
    EFFECT_APPEND,  /* write `event`, a decision, to the log */
    EFFECT_START,   /* start `task` on its GPUs; answer with STARTED, or EXITED (FAILURE_LAUNCH) */
    EFFECT_KILL,    /* end `task`'s processes: SIGTERM, then SIGKILL; answer with EXITED */
    EFFECT_WAIT,    /* `task`, the first of its queue, now waits for another reason: core_explain */
    EFFECT_SUSPEND, /* take `task` off its GPUs; answer with SUSPENDED or SUSPENSION_FAILED */
    EFFECT_RESUME,  /* put it on its GPUs; answer with RESUMED or SUSPENSION_FAILED */
    EFFECT_MOVE,    /* to task->run->yield.to_gpus; answer with MOVED or SUSPENSION_FAILED */
    EFFECT_PAUSE,   /* freeze its processes */
    EFFECT_CONTINUE,     /* let frozen processes continue */
    EFFECT_GRANT_MEMORY, /* its allocation that waits is tried again */
    EFFECT_DENY_MEMORY,  /* its allocation that waits fails as it would have */
};

struct effect {
    enum effect_kind kind;
    uint64_t task;
    struct event event; /* of EFFECT_APPEND; its data is valid until the next step */
};

struct core;

/* Creates a core without GPUs and tasks. `settings`: copied. Returns it, for core_destroy; NULL
 * without memory. */
struct core *core_create(const struct core_settings *settings);
void core_destroy(struct core *core);

/* From now on the core calls `check` to find out whether the server of a GPU admits a task. Copied;
 * its context is borrowed until core_destroy. */
void core_set_node_check(struct core *core, const struct node_check *check);

/* Returns the check that was set, borrowed; NULL: there is none. */
const struct node_check *core_node_check(const struct core *core);

/* The task's policy, or the default. */
const struct policy *core_task_policy(const struct core *core, const struct task *task);

/* Does the task keep its GPUs to itself as long as it runs? By its request or its policy; or it has
 * crashed twice and recovers alone. */
bool core_wants_exclusive_gpus(const struct core *core, const struct task *task);

/* Replaces the settings from now on; the state stays. */
void core_configure(struct core *core, const struct core_settings *settings);

/*
 * Applies the event and decides what follows from it.
 *
 * Returns 0; or, with nothing changed, CORE_NO_SUCH_TASK or CORE_NOT_NOW for an event that does not
 * suit the state (a cancel of a task that has ended, a sample of no GPU); or -ENOMEM: the driver
 * has to end and replay its log.
 */
enum { CORE_NO_SUCH_TASK = 1, CORE_NOT_NOW = 2 };
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

/* The effects that the last step left, in order. Valid until the next step. */
const struct effect *core_effects(const struct core *core, int *ret_n);

/* Returns when the core needs a TICK at the latest (a task's time limit or begin); 0: at once,
 * after what else waits has had its turn; TIME_NEVER: never. */
int64_t core_deadline_us(const struct core *core);

/* Can the request ever be met on these GPUs? Returns 0; -EINVAL with the reason in the fault. */
int core_check_request(
    const struct core *core, const struct task_request *request, struct fault *fault);

/*
 * Can a user's SUSPEND of the task be met now?
 *
 * Returns 0, or with the reason in the fault -ENOENT, -EBUSY or -ENOTSUP.
 */
int core_check_suspend(const struct core *core, uint64_t id, struct fault *fault);

/*
 * Can a user's MOVE of the task be met now?
 *
 * gpus, n: where to: indices into the view.
 *
 * Returns 0, or with the reason in the fault -ENOENT, -EBUSY, -ENOTSUP or -EINVAL.
 */
int core_check_move(
    const struct core *core, uint64_t id, const int *gpus, int n, struct fault *fault);

/*
 * Can the UPDATE be applied now? The request can be changed until the task starts; then its time
 * limit can be shortened, and its priority for a later requeue changed.
 *
 * Returns 0, or with the reason in the fault -ENOENT, -EBUSY or -EINVAL.
 */
int core_check_update(
    const struct core *core, uint64_t id, const struct task_update *update, struct fault *fault);

/* The reservations in advance, including past ones, by rising id. */
const struct advance *core_advances(const struct core *core, int *ret_n);

/* Returns the id that the next of them has. */
uint64_t core_next_advance_id(const struct core *core);

/* Can the GPUs be reserved in that time, beside the other reservations? Returns 0; -EINVAL with the
 * reason in the fault. */
int core_check_advance(
    const struct core *core, const struct advance *advance, int64_t now_us, struct fault *fault);

/* Returns the task, valid until core_forget; NULL when there is none of this id. */
const struct task *core_task(const struct core *core, uint64_t id);

/* Frees a task that has ended. Others, and ids that are not known, stay as they are. */
void core_forget(struct core *core, uint64_t id);

/* To walk all tasks, from 0 on. Returns the task with the smallest id above `id`, or NULL. */
const struct task *core_next_task(const struct core *core, uint64_t id);

/* Chosen: with preemption, how long a completion may be, relative to that of first come, first
 * served. */
#define CORE_STRETCH_MAX 1.5

/* When the task would end under first come, first served on whole GPUs, in us after its
 * fair_since_us (fair_start.c); 0: it is not known. */
int64_t core_fifo_completion_us(const struct task *task);

/* The queues that the main queue consists of: one, or with ORDER_FAIR one for each user. Returns
 * queue `i`, from 0 on; NULL after the last. */
const struct task_queue *core_main_queue(const struct core *core, int i);

/* Lists the first tasks of the main queue in the order in which they become its head, as ranks are
 * now. Returns how many, at most `most`. */
int core_list_waiting(const struct core *core, const struct task **ret_tasks, int most);

/* Lists the tasks that wait for their begin moment (and perhaps for more), the earliest first.
 * Returns how many, at most `most`. */
int core_list_begins(
    const struct core *core, int64_t now_us, const struct task **ret_tasks, int most);

/* May the task enter the main queue at its begin moment? False where it also waits for a
 * dependency, or a limit of its array, user or project may keep it out. */
bool core_waits_for_begin_only(const struct core *core, const struct task *task);

/* Would a task that is not in the main queue come before a waiting task if it were, as ranks are
 * now? By priority, rank and age. */
bool core_would_come_before(
    const struct core *core, const struct task *task, const struct task *waiting);

/* Returns how many tasks the main queue has. */
int core_queued_count(const struct core *core);

/*
 * Counts the tasks before a waiting task, in its queue and, with ORDER_FAIR, in those of the users
 * who come before its own.
 *
 * ret_of_others: how many of them are of other users; may be NULL
 */
int core_ahead_of(const struct core *core, const struct task *task, int *ret_of_others);

/* A user that has submitted a task, or was charged for one. */
struct user_standing {
    uint32_t uid;
    const char *project; /* valid until the settings change */
    int shares;
    int64_t usage_us;    /* GPU time charged, decayed to now; */
    int64_t recorded_us; /* the part of it in the log's last usage event */
    int64_t window_us;   /* GPU time charged within the window; 0: there is none */
    int n_gpus;          /* held now; a GPU that two of the user's tasks share counts twice */
    int fair_rank;       /* 1: comes first; users may have the same rank */
};

/* Users are numbered from 0 on, by rising uid. core_user_number returns -1 for an unknown one. */
int core_user_count(const struct core *core);
int core_user_number(const struct core *core, uint32_t uid);
struct user_standing core_user_standing(const struct core *core, int i, int64_t now_us);

/* Returns the fair rank of a user; 0: the user is not known. */
int core_fair_rank(const struct core *core, uint32_t uid);

/* Returns "fair" or "fifo". */
const char *queue_order_name(enum queue_order order);

/* Reads such a name. Returns 0, or -EINVAL for another text. */
int queue_order_parse(const char *name, enum queue_order *ret_order);

/* The parts of the state. Each returns a pointer that stays valid until core_destroy. */
const struct task_queue *core_recovery_queue(const struct core *core);
const struct task_queue *core_suspended_queue(const struct core *core);
const struct task_queue *core_blocked_queue(const struct core *core);
const struct cluster_view *core_view(const struct core *core);
const struct core_settings *core_get_settings(const struct core *core);
const struct host_resources *core_host_used(const struct core *core); /* by running tasks */
const struct suspension_cost *core_suspension_cost(const struct core *core);

/*
 * Writes in one line why a waiting task does not start now: "GPU 2: SMACT 83 % over 80 %; GPU 3:
 * 1.2 GiB short", or "3 tasks are before it in the queue", or which task is the head of the queue
 * and why this one does not start before it.
 *
 * size: of `buffer`, in bytes; a longer text is cut.
 *
 * Returns `buffer`.
 */
const char *core_explain(
    const struct core *core, uint64_t id, int64_t now_us, char *buffer, size_t size);

/* Writes how many tasks are before a waiting task, and why those of other users are. Returns
 * `buffer`. */
const char *core_explain_ahead(const struct core *core, uint64_t id, char *buffer, size_t size);

/* Writes which of two tasks comes first, and why. Returns `buffer`. */
const char *core_explain_order(
    const struct core *core, uint64_t one, uint64_t other, char *buffer, size_t size);

/* Returns the same as one of Slurm's reasons: "Resources", "Priority", "JobHeldUser", "Dependency",
 * "BeginTime", "Recovering" or "None". */
const char *core_reason_word(const struct core *core, uint64_t id);

#endif
