/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver asks the core. No question changes what the core decides. Functions that take an id
 * answer for an unknown one as they say.
 */
#ifndef COLLOC_CORE_QUESTIONS_H
#define COLLOC_CORE_QUESTIONS_H

#include "base/fault.h"
#include "core/copy_share.h"
#include "core/effect.h"
#include "core/queue.h"
#include "core/settings.h"

struct core;

/* Returns the check that was set, borrowed; NULL: there is none. */
const struct node_check *core_node_check(const struct core *core);

/* The task's policy, or the default. */
const struct policy *core_task_policy(const struct core *core, const struct task *task);

/* Does the task keep its GPUs to itself as long as it runs? By its request or its policy; or it has
 * crashed twice and recovers alone. */
bool core_wants_exclusive_gpus(const struct core *core, const struct task *task);

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
 * Can a user's MOVE of the task be met now? Each new GPU must admit the task as for a start.
 *
 * gpus, n: where to: indices into the view.
 *
 * Returns 0, or with the reason in the fault -ENOENT, -EBUSY, -ENOTSUP or -EINVAL.
 */
int core_check_move(const struct core *core, uint64_t id, const int *gpus, int n, int64_t now_us,
    struct fault *fault);

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

/* The speed of a task, relative to a plain process that has the GPUs to itself. */
struct speed_now {
    struct reading speed; /* 0: it is paused */
    double alone;         /* if the others were not there: below 1 for a client of MPS */
    bool is_shared;       /* others compute on its GPUs */
};

/* Predicts how fast a task is beside those that compute on its GPUs now. Not valid where the
 * activity of one of them is not known, or an external process is there. */
struct speed_now core_speed_now(const struct core *core, const struct task *task);

/* What measured speeds have taught about the delay of tasks by others in one way of sharing. */
struct learned_delay {
    double factor;      /* times as much as the model says: predictions use it; 1: nothing */
    int n_users;        /* whose tasks were measured */
    double predicted_s; /* the delay of their tasks that the model predicted, in all */
};

/* sharing: SHARING_STREAMS or SHARING_MPS */
struct learned_delay core_learned_delay(const struct core *core, enum sharing sharing);

/* The host memory for the copy of a task, without what its own takes already. */
struct copy_share core_copy_share(const struct core *core, const struct task *task);

/* Returns how much host memory the copies of all tasks take. */
double core_copies_bytes(const struct core *core);

/* Returns the task, valid until core_forget; NULL when there is none of this id. */
const struct task *core_task(const struct core *core, uint64_t id);

/* Returns the rule for early stop of an array of which a task is left, valid until then; NULL: it
 * has none. */
const struct halving_rule *core_halving_rule(const struct core *core, uint64_t array);

/* To walk all tasks, from 0 on. Returns the task with the smallest id above `id`, or NULL. */
const struct task *core_next_task(const struct core *core, uint64_t id);

/* Chosen: with preemption, how long a completion may be, relative to that of first come, first
 * served. */
#define CORE_STRETCH_MAX 1.5

/* When the task would end under first come, first served on whole GPUs, in us after its
 * fair_since_us (fifo_schedule.c); 0: it is not known. */
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

/* Counts the other users' tasks that are before a waiting task because of a higher priority,
 * whatever the ranks of their users. */
int core_ahead_by_priority(const struct core *core, const struct task *task);

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

/* The parts of the state. Each returns a pointer that stays valid until core_destroy. */
const struct task_queue *core_recovery_queue(const struct core *core);
const struct task_queue *core_suspended_queue(const struct core *core);
const struct task_queue *core_blocked_queue(const struct core *core);
const struct cluster_view *core_view(const struct core *core);
const struct core_settings *core_get_settings(const struct core *core);
const struct host_resources *core_host_used(const struct core *core); /* by running tasks */

/* What a stop by this way costs a task on the GPU; gpu -1: on one of which nothing is known. */
const struct suspension_cost *core_stop_cost(
    const struct core *core, int gpu, enum suspension_way way);

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

/* Writes why no further task starts on a GPU of the core's view now. Returns `buffer`; NULL when
 * nothing holds it. */
const char *core_explain_hold(
    const struct core *core, const struct gpu_view *gpu, char *buffer, size_t size);

/* Writes how many tasks are before a waiting task, and why those of other users are. Returns
 * `buffer`. */
const char *core_explain_ahead(const struct core *core, uint64_t id, char *buffer, size_t size);

/* Writes whether a running task has the speed that it was promised, and if not, why; "" for other
 * tasks. Returns `buffer`. */
const char *core_explain_promise(
    const struct core *core, uint64_t id, int64_t now_us, char *buffer, size_t size);

/* Writes for how long the task has paused so that others were measured alone; "" where it has not.
 * Returns `buffer`. */
const char *core_explain_probes(
    const struct core *core, const struct task *task, char *buffer, size_t size);

/* Writes why there is no host memory for the copy of a running task, so that it cannot give way; ""
 * where there is some, or the task does not run. Returns `buffer`. */
const char *core_explain_copy(
    const struct core *core, const struct task *task, char *buffer, size_t size);

/* Writes which of two tasks comes first, and why. Returns `buffer`. */
const char *core_explain_order(
    const struct core *core, uint64_t one, uint64_t other, char *buffer, size_t size);

/* Returns the same as one of Slurm's reasons: "Resources", "Priority", "JobHeldUser", "Dependency",
 * "BeginTime", "Recovering" or "None". */
const char *core_reason_word(const struct core *core, uint64_t id);

/* Has an event been applied after which a task might be placed that could not be before? The next
 * core_step tries it. */
bool core_wants_pass(const struct core *core);

#endif
