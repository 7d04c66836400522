/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of src/core: the state of the core, and the functions of each file on it. */
#ifndef COLLOC_CORE_PRIVATE_H
#define COLLOC_CORE_PRIVATE_H

#include "core/core.h"
#include "core/memory_domain.h"
#include "fairness/fair_tree.h"

/* The last EFFECT_WAIT of a queue: it is repeated only when the task or its reasons change. */
struct reported_wait {
    uint64_t task;
    uint64_t reasons; /* a hash of the verdicts' kinds and tasks */
};

/* What first come, first served on whole GPUs would have come to (fair_start.c). */
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
};

/* A user: the charges (users.c), and with ORDER_FAIR the waiting tasks. */
struct core_user {
    struct task_queue queue; /* the first member: main_queue.c finds the user of a queue */
    uint32_t uid;
    int n_gpus;       /* held by its tasks, each counted for itself */
    int64_t usage_us; /* of the last EVENT_USAGE: GPU time, as of usage_at_us */
    int64_t usage_at_us;
    struct usage_window window; /* as of that event too */
    double accrued_us;          /* charged since then, in no event yet */
    struct fair_member fair;    /* its shares, and its rank */
    struct ahead_of_user ahead[PRIORITY_URGENT - PRIORITY_LOW + 1];
};

struct core_users {
    struct core_user **list;    /* by rising uid */
    struct fair_member **order; /* scratch of core_rank_users */
    int n;
    size_t capacity, order_capacity;
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

struct core {
    struct core_settings settings;
    struct share_table shares; /* the settings point to it */
    struct core_users *users;
    struct cluster_view view;

    struct suspension_cost suspension_cost; /* that of the settings, until an event reports it */

    struct task **tasks; /* by rising id */
    int n_tasks;
    int n_taking_turns;       /* of them, with time slots */
    struct advance *advances; /* by rising id */
    size_t n_advances, advances_capacity;
    uint64_t last_advance; /* the largest id so far */
    bool fills_kept;       /* tasks behind the head are tried, on GPUs that are kept from it only */
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
    int n_memory_waits;              /* tasks of which an allocation waits */
    size_t tasks_capacity;
    struct task_queue main_queue; /* with ORDER_FIFO */
    int n_queued;                 /* in it and the users' queues together */
    struct task_queue recovery_queue, suspended_queue, blocked_queue;

    struct dependents on_tasks, on_arrays; /* open dependencies on one task, on several */
    struct {                               /* ends that are to be judged, by rising id */
        struct noted_end *list;
        size_t n, capacity;
    } ended;
    struct { /* what may let blocked tasks become eligible */
        struct opening *list;
        size_t n, capacity;
    } openings;
    struct group_use *group_uses; /* scratch: active tasks of users and projects (eligible.c) */
    size_t n_group_uses, group_uses_capacity;
    bool is_gate_open;     /* any blocked task may have become eligible */
    int64_t next_begin_us; /* when the next blocked task may begin */

    struct effect *effects;
    int n_effects;
    size_t effects_capacity;

    int *chosen;                   /* scratch: one per GPU */
    struct verdict *verdicts;      /* scratch: one per GPU */
    struct head_outlook *outlooks; /* scratch: one per GPU, while tasks behind the head are tried */
    bool has_outlooks;             /* they are of the view and the head as they are now */
    struct node_check node_check;  /* `ask` is NULL on a single server */

    struct reported_wait main_wait, recovery_wait;
    uint64_t drained_for;  /* the recovering task that GPUs are drained for; 0: none */
    uint64_t reserved_for; /* the head of the queue that GPUs are reserved for; 0: none */
    bool head_lacks_power; /* the head of the queue would start but for its server's power */
    bool any_gone;         /* a MIG instance is gone */
    bool any_time_limit;   /* a task has had a time limit */
    bool replayed;         /* since the last step: the log may have ended before a decision */
    bool pass_needed;      /* something has changed that may let a task be placed */
    bool is_pass_deferred; /* to the next step: a cancel has left it */
    int64_t last_pass_us;
};

/* ---- tasks.c ---- */

/* By id. Returns NULL when there is none. */
struct task *core_find_task(const struct core *core, uint64_t id);

/* The position in core->tasks of the first task with an id of at least `id`. */
int core_task_position(const struct core *core, uint64_t id);

/* A new task, zeroed but for its id. Returns NULL when memory is out. */
struct task *core_add_task(struct core *core, uint64_t id);

/* Releases all tasks. */
void core_free_tasks(struct core *core);

/* ---- users.c ---- */

/* Returns NULL when there is none. */
struct core_user *core_find_user(const struct core *core, uint32_t uid);

/* Finds the user, or adds a user without usage. Returns NULL when memory is out. */
struct core_user *core_add_user(struct core *core, uint32_t uid, int64_t now_us);
void core_free_users(struct core *core);

/* Copies the table, NULL: all users are equal, and sets the shares of all users. */
void core_set_shares(struct core *core, const struct share_table *table);

/* Charges the GPU's residents up to now. To be called before anything changes that the charge
 * depends on. */
void core_accrue(struct core *core, struct gpu_view *gpu, int64_t now_us);

/* A task of the user holds a GPU more (`change` 1) or less (-1). */
void core_count_gpu(struct core *core, uint32_t uid, int change, int64_t now_us);

/* Applies an EVENT_USAGE. Returns 0 or -ENOMEM. */
int core_apply_usage(struct core *core, const struct event *event);

/* Decides EVENT_USAGE for the users that were charged, once a period is over. Returns 0 or
 * -ENOMEM. */
int core_record_usage(struct core *core, int64_t now_us);

/* The same for one user, at once. */
int core_record_usage_of(struct core *core, uint32_t uid, int64_t now_us);

/* Returns the usage of a user, or of all users of a project by its number, for a limit of GPU
 * hours: that within the window, if there is one, or else decayed to now. */
int64_t core_usage_of(const struct core *core, bool is_project, uint32_t id, int64_t now_us);

/* Returns when that within the window falls below a limit above 0, if nothing more is charged. */
int64_t core_usage_falls_below(
    const struct core *core, bool is_project, uint32_t id, int64_t limit_us, int64_t now_us);

/* Ranks the users anew, if something has changed. */
void core_rank_users(const struct core *core);

/* ---- main_queue.c ---- */

/* The queue of the main queue in which the task waits, or would. */
struct task_queue *core_queue_of(struct core *core, const struct task *task);

/* Does a task come before a task of another queue of the main queue? By priority, rank and age. */
bool core_comes_before(const struct core *core, const struct task *task, const struct task *other);

/* The first task of the queue that comes first. Returns NULL when no task is queued. */
struct task *core_first_task(const struct core *core);

/* Moves the queued tasks into the queues of the other order. */
void core_change_order(struct core *core, enum queue_order order);

/* ---- apply.c: the only file that changes the state of tasks ---- */

/*
 * Changes the state as the event says; decides nothing.
 *
 * Returns 0, CORE_NO_SUCH_TASK or CORE_NOT_NOW (nothing has changed), or -ENOMEM.
 */
int core_apply_event(struct core *core, const struct event *event);

/* The task leaves its queue to be held; it is not waiting any more. */
void core_leave_queue(struct core *core, struct task *task, int64_t now_us);

/* It waits until it may begin. */
void core_block_task(struct core *core, struct task *task, int64_t now_us);

/* It goes into its queue, or is blocked. */
void core_enter_queue(struct core *core, struct task *task, int64_t now_us);

/* Are these indices of GPUs, at least one? */
bool core_are_gpus(const struct core *core, const int *gpus, int n);

/* Makes the task a resident of the GPU, which is in its list of GPUs. Returns 0 or -ENOMEM. */
int core_add_to_gpu(struct core *core, struct task *task, int gpu, int64_t now_us);

/* Another time limit: its residents show when it ends the task. */
void core_note_time_limit(struct core *core, const struct task *task, int64_t now_us);

/* The task is no resident of the GPU any more. */
void core_remove_resident(struct core *core, int gpu, uint64_t id, int64_t now_us);

/* The task gives up its reservation. */
void core_release_gpus(struct core *core, struct task *task, int64_t now_us);

/* Drains no GPU any more. */
void core_stop_draining(struct core *core);

/* ---- host.c ---- */

/* The task gets its CPUs and main memory, or gives them back. */
void core_take_host(struct core *core, const struct task *task);
void core_return_host(struct core *core, const struct task *task);

/* Does the server have the task's other requirements besides GPUs? Returns VERDICT_FITS,
 * VERDICT_HOST_CPUS or VERDICT_HOST_MEMORY. */
struct verdict core_check_host(const struct core *core, const struct task *task);

/* The same, and a task of the main queue leaves enough for the first recovering one. */
struct verdict core_check_host_turn(const struct core *core, const struct task *task);

/* Does the task wait because the head would lack CPUs or main memory once it has its part? */
bool core_leaves_host_to(const struct core *core, const struct task *task, const struct task *head);

/* Can the server ever have it? Returns 0; -EINVAL with the reason in the fault. */
int core_check_host_request(
    const struct core *core, const struct host_resources *wanted, struct fault *fault);

/* ---- advance.c ---- */

/* Applies a RESERVE or UNRESERVE. Returns 0, CORE_NOT_NOW or -ENOMEM. */
int core_apply_advance(struct core *core, const struct event *event);

/* Sets in the view which GPUs are kept from the task by reservations in advance. */
void core_set_aside(const struct core *core, const struct task *task, int64_t now_us);

/* When the next reservation begins or ends; TIME_NEVER: none does. */
int64_t core_advance_deadline_us(const struct core *core, int64_t now_us);

/* Places tasks behind the head, which waits, on GPUs that are kept from it: they end before the
 * reservation begins. Returns 0 or -ENOMEM. */
int core_fill_kept(struct core *core, const struct task *head, int64_t now_us);

/* Places tasks of users that have GPUs reserved now, up to as many GPUs. Returns 0 or -ENOMEM. */
int core_schedule_advances(struct core *core, int64_t now_us);

/* ---- update.c ---- */

/* Applies an UPDATE. Returns 0, CORE_NOT_NOW or -ENOMEM. */
int core_apply_update(struct core *core, struct task *task, const struct event *event);

/* ---- dependents.c ---- */

/* Applies a DEPENDENCY. Returns 0, or CORE_NOT_NOW. */
int core_apply_dependency(struct core *core, struct task *task, const struct event *event);

/* May the task, or the array, have these dependencies? They have to be on tasks before it, so that
 * there is no cycle. */
bool core_may_depend(uint64_t id, const struct dependency *after, int n_after);

/* Gives the task its own copy of the dependencies in its request. `place`: in its array, from 1; or
 * 0. Returns 0 or -ENOMEM. */
int core_take_dependencies(struct core *core, struct task *task, uint64_t place);

/* The task has no open dependencies any more. */
void core_drop_dependencies(struct core *core, struct task *task);

/* The task has ended: dependencies on it can be judged. Returns 0 or -ENOMEM. */
int core_note_end(struct core *core, uint64_t id, bool failed);

/* The same for the tasks that had ended before those with ids from `first` to `last_task` came to
 * depend on them. Returns 0 or -ENOMEM. */
int core_note_past_ends(struct core *core, uint64_t first, uint64_t last_task);

/* Judges dependencies on tasks that have ended, and ends the tasks that can never start: as many as
 * a step may. Returns 0 or -ENOMEM. */
int core_judge_dependencies(struct core *core, int64_t now_us);

/* ---- eligible.c ---- */

/* Can something else than its turn keep the task from starting, now or later? */
bool core_is_gated(const struct task *task);

/* The task is blocked: unless dependencies are open, it is examined now or when it may begin. */
void core_note_blocked(struct core *core, const struct task *task, int64_t now_us);

/* The task leaves the queues: another task of its array or its user may enter one. */
void core_leave_slot(struct core *core, const struct task *task);

/* Lets blocked tasks into their queue that may start now. Returns 0 or -ENOMEM. */
int core_admit_eligible(struct core *core, int64_t now_us);

/* ---- apply_yield.c ---- */

/* Applies an event about suspending, resuming, moving, pausing or waiting for memory. Returns as
 * core_apply_event; CORE_NOT_NOW for other events. */
int core_apply_yield(struct core *core, struct task *task, const struct event *event);

/* A new attempt: what held of the last one only is forgotten. */
void core_begin_attempt(struct task *task);

/* The attempt ended at `ended_us`: a stop ends then at the latest. */
void core_end_attempt(struct core *core, struct task *task, int64_t ended_us);

/* The task is to end. It becomes ENDING, unless it is suspended or about to change its state:
 * then it stays, and does not wait in a queue. */
void core_begin_ending(struct task *task, int64_t now_us);

/* ---- view_update.c, residence.c ---- */

/* Notes the open capacity of the GPU and of those that share its memory. Call it when its
 * residents, its size or its sample have changed. */
static inline void core_note_open(struct core *core, int gpu)
{
    const struct gpu_view *gpus = core->view.gpus, *at = &gpus[gpu];
    do {
        core->view.open_bytes[at - gpus] = gpu_view_open_bytes(at);
        at = memory_domain_next(at);
    } while (at != &gpus[gpu]);
}

/* Applies an EVENT_SAMPLE. Sets core->pass_needed when a task may be placed after it. Returns 0,
 * CORE_NOT_NOW or -ENOMEM. */
int core_apply_sample(struct core *core, const struct event *event);

/* Moves the resident along residence.h by its reading of memory. Returns whether it has just taken
 * more than a CUDA context. */
bool resident_follow_memory(
    const struct core_settings *settings, struct resident *resident, int64_t now_us);

/* ---- yield.c ---- */

/* Can the driver of the GPUs suspend the running task, as far as is known? */
bool core_can_suspend(const struct core *core, const struct task *task);

/* May the core suspend or move it now? Not a service, and not again soon after that has failed. */
bool core_may_suspend(const struct core *core, const struct task *task, int64_t now_us);

/* The GPU memory that the running task holds or needs on each GPU. Not valid: neither is known. */
struct reading core_bytes_of(const struct core *core, const struct task *task);

/* Can the running task be moved to the GPU when it holds `bytes` there, with the margin? */
bool core_can_take(const struct core *core, const struct task *task, double bytes, int gpu);

/* The GPU with most free memory among those to which the running task can be moved when it holds
 * `bytes` there, with the margin. Returns -1 when there is none, or the task has several GPUs. */
int core_find_destination(const struct core *core, const struct task *task, double bytes);

/* Moves tasks away from GPUs that fail, as far as others have room. Returns 0 or -ENOMEM. */
int core_empty_failing_gpus(struct core *core, int64_t now_us);

/* Can a user's SUSPEND or MOVE be met now? True for other events. */
bool core_is_command_possible(const struct core *core, const struct event *event);

/* Suspends a running task, or pauses it if that is all that is possible. Returns 0 or -ENOMEM. */
int core_stop_task(struct core *core, const struct task *task, enum yield_reason reason,
    uint64_t to_task, int64_t now_us);

/* Moves a running task to as many other GPUs as it has. `bytes`: its memory on each of them.
 * Returns 0 or -ENOMEM. */
int core_move_task(struct core *core, const struct task *task, const int *gpus,
    struct reading bytes, enum yield_reason reason, uint64_t to_task, int64_t now_us);

/* Resumes a suspended task on as many GPUs as it requested. Returns 0 or -ENOMEM. */
int core_resume_task(struct core *core, const struct task *task, const int *gpus, int64_t now_us);

/* Resumes a suspended task if its policy finds GPUs for it. Returns 0 or -ENOMEM. */
int core_try_resume(
    struct core *core, const struct task *task, bool passes_reservation, int64_t now_us);

/* Lets a paused task continue. Returns 0 or -ENOMEM. */
int core_continue_task(struct core *core, const struct task *task, int64_t now_us);

/* What suspending and resuming the task would take, as far as its memory is known. */
int64_t core_yield_cost_us(const struct core *core, const struct task *task);

/* Leaves EFFECT_KILL, unless the task is being suspended, resumed or moved: its answer leads to
 * that. Returns 0 or -ENOMEM. */
int core_kill_task(struct core *core, const struct task *task);

/* What follows from an input about giving way. Returns 0 or -ENOMEM. */
int core_after_yield(struct core *core, const struct task *task, const struct event *event);

/* Leaves the effect of the task's state again, after STARTED was repeated. Returns 0 or -ENOMEM. */
int core_repeat_effect(struct core *core, const struct task *task);

/* Decides the rest of a user's command after a replay. Returns 0 or -ENOMEM. */
int core_decide_yield_leftovers(struct core *core, const struct task *task, int64_t now_us);

/* A suspended task as policies see it: it needs the memory that it held. */
struct task core_as_waiting(const struct task *task);

/* Resumes what can be resumed. Sets `ret_waits` when a task waits that the GPUs could serve.
 * Returns 0 or -ENOMEM. */
int core_schedule_suspended(struct core *core, int64_t now_us, bool *ret_waits);

/* When the next resumption that failed is tried again; TIME_NEVER: there is none. */
int64_t core_retry_us(const struct core *core);

/* ---- service.c ---- */

/* Is the service that has exited run again? */
bool core_may_restart(const struct task *task);

/* How long it is before that, in microseconds. */
int64_t core_restart_delay_us(const struct task *task);

/* Applies a LATENCY or RESTART. Returns 0 or CORE_NOT_NOW. */
int core_apply_latency(struct core *core, struct task *task, const struct event *event);
int core_apply_restart(struct core *core, struct task *task, const struct event *event);

/* A new attempt: nothing has been reported of it. */
void core_begin_service(struct task *task);

/* The task has come to the GPU, or computes there again; or it gives way there. */
void core_note_joined(struct core *core, const struct task *task, int gpu, int64_t now_us);
void core_note_gave_way(struct core *core, const struct task *task, int64_t now_us);

/* What its residence shows of a service. */
struct resident_service core_resident_service(
    const struct core *core, const struct task *task, int64_t now_us);

/* Lets tasks give way to services that miss their targets, and resumes them. Returns 0 or
 * -ENOMEM. */
int core_schedule_services(struct core *core, int64_t now_us);

/* Does the task not compute because a service missed its target? */
bool core_waits_for_service(const struct task *task);

/* ---- memory_answer.c ---- */

/* Answers the allocations that wait, or lets a task give way to them. Returns 0 or -ENOMEM. */
int core_settle_memory_waits(struct core *core, int64_t now_us);

/* ---- stop_choice.c ---- */

/* Chosen: stopping a task costs at most 1/20 of the time that it computes. */
enum { CORE_RUN_PER_COST = 20 };

/* Which tasks may be stopped for a head. */
struct stop_rule {
    bool (*may_be_stopped)(
        const struct core *core, const struct task *task, const struct task *head, int64_t now_us);

    /* Is `a` stopped rather than `b`? */
    bool (*is_stopped_rather)(
        const struct core *core, const struct task *a, const struct task *b, int64_t now_us);

    enum yield_reason reason;
};

/* Has a GPU that suits the head not been sampled since its residents changed? Then its free memory
 * is unknown. */
bool core_awaits_sample(const struct core *core, const struct task *head);

/* Stops tasks for the head, if it has to wait and that helps. Returns 0 or -ENOMEM. */
int core_stop_tasks_for(
    struct core *core, const struct task *head, const struct stop_rule *rule, int64_t now_us);

/* ---- preempt.c ---- */

/* The place of the task in the order of preemption. */
int64_t core_rank(const struct core *core, const struct task *task, int64_t now_us);

/* Does the suspended task come before the head of the queue, or none: is it resumed first? */
bool core_is_resumed_before(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us);

/* The main queue and the suspended tasks, with preemption. Returns 0 or -ENOMEM. */
int core_schedule_preempting(struct core *core, int64_t now_us);

/* ---- slots.c ---- */

/* Is the task suspended because its time slot was over, and waits for the next? */
bool core_waits_for_turn(const struct task *task);

/* Does the task that waits for its turn come before the head of the queue, or none? */
bool core_is_turn_of(const struct task *task, const struct task *head);

/* Does any task with GPUs, or that waits for a turn, take turns? */
bool core_has_turns(const struct core *core);

/* The main queue and the tasks that wait for their turns. Returns 0 or -ENOMEM. */
int core_schedule_turns(struct core *core, int64_t now_us);

/* When the next slot is over, while a task waits; TIME_NEVER: none is. */
int64_t core_slot_deadline_us(const struct core *core);

/* ---- make_room.c ---- */

/* Moves a task to another GPU, if the head of the main queue can start then and that gains more
 * than it costs. Returns 0 or -ENOMEM. */
int core_make_room(struct core *core, int64_t now_us);

/* ---- fair_start.c ---- */

/* Applies a FIFO. Returns 0, CORE_NOT_NOW or -ENOMEM. */
int core_apply_fifo(struct core *core, const struct event *event);

/* The task has ended: if that was early, the schedule is marked as too long. */
void core_note_early_end(struct core *core, const struct task *ended);

/* The task gives up its place and its latest start: it may not start for now. */
void core_leave_fifo(struct core *core, struct task *task);

/* The task waits in its queue, and may need a place. */
void core_note_arrival(struct core *core, const struct task *task);

/* The schedule may be too long, and any task may lack a place. */
void core_doubt_fifo(struct core *core);

/* Does core_update_fifo have to be called? */
bool core_is_fifo_marked(const struct core *core);

/* Shortens a schedule that is marked, and decides the latest starts of tasks that have arrived, as
 * far as times are known. To be called once in a step: the effects have one schedule. Returns 0 or
 * -ENOMEM. */
int core_update_fifo(struct core *core, int64_t now_us);

/* Has its latest start come? Then it goes before all tasks of smaller rank. */
bool core_is_urgent(const struct core *core, const struct task *task);

/* ---- fault_attribution.c ---- */

/* Decides whether the exited task may be at fault for its end. Call it while the task still holds
 * its GPUs. */
void core_attribute_exit(struct core *core, struct task *task, const struct event *event);

/* ---- core.c ---- */

/* Decides the END of the task. Returns 0 or -ENOMEM. */
int core_end_task(struct core *core, uint64_t id, enum task_state state, int64_t now_us);

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

/* Chosen: tasks tried for backfill in a pass. */
enum { CORE_BACKFILL_TRIES_MAX = 64 };

/* Returns the number of tasks to try: fewer on many GPUs, each of which costs a verdict. */
int core_backfill_tries(const struct core *core);

/* May tasks start before the head of the queue, where its policy sees that this does not delay
 * it? */
bool core_backfills(const struct core *core, const struct task *head);

/* Tasks. Chosen: once this many later ones have started before it, the oldest task is the head. */
enum { CORE_PASSED_MAX = 100 };

/* The query for a policy about the task. */
struct placement_query core_query(const struct core *core, const struct task *task, int64_t now_us);

/* Chosen: tasks of the main queue among which the head and the shortest are found. */
enum { CORE_QUEUE_DEPTH_MAX = 1024 };

/* The task of the main queue that is placed next. Returns NULL when the queue is empty. */
struct task *core_head_of_queue(const struct core *core);

/* Asks the task's policy for GPUs: sets core->chosen or core->verdicts. */
enum placement_answer core_try_gpus(struct core *core, const struct task *task, int64_t now_us);

/* Places the task on core->chosen. Returns 0 or -ENOMEM. */
int core_place_task(struct core *core, struct task *task, int64_t now_us);

/* Places what can be placed of the main queue. Returns 0 or -ENOMEM. */
int core_schedule_main(struct core *core, int64_t now_us);

/* Do enough healthy GPUs suit the task? A lost GPU may never return. */
bool core_can_be_served(const struct core *core, const struct task *task);

/* Do enough of them, of those that no reservation in advance keeps from it? To be asked of a
 * suspended task that has just been tried. */
bool core_waits_for_room(const struct core *core, const struct task *task);

/* Starts tasks behind the head on GPUs of kinds that the head cannot use (other_kinds.c). Returns 0
 * or -ENOMEM. */
int core_pass_other_kinds(struct core *core, const struct task *head, int64_t now_us);

/* Is there a GPU of a kind that both tasks may use? */
bool core_shares_kinds(const struct core *core, const struct task *task, const struct task *head);

/* Reserves no GPU for the head of the queue any more. */
void core_release_reservation(struct core *core);

/* Starts what can start: the recovery queue first, then suspended tasks. Returns 0 or -ENOMEM. */
int core_schedule(struct core *core, int64_t now_us);

#endif
